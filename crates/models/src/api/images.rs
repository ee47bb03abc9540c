//! Images as APIs take them: by address or by data.

use plimsoll_core::Image;

/// The place of an image.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ImagePlace<'a> {
    Address(&'a str),
    Base64 { media_type: &'a str, data: &'a str },
}

/// Recognises an address, a `data:` address and bare base64.
pub(super) fn source(image: &Image) -> ImagePlace<'_> {
    let data = &*image.data;
    if let Some((head, data)) = data.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        let media_type = head.split(';').next().filter(|kind| !kind.is_empty());
        return ImagePlace::Base64 { media_type: media_type.unwrap_or(&image.media_type), data };
    }
    if data.starts_with("http://") || data.starts_with("https://") {
        return ImagePlace::Address(data);
    }
    ImagePlace::Base64 { media_type: &image.media_type, data }
}

/// Returns one address that is or holds the image.
pub(super) fn address(image: &Image) -> String {
    match source(image) {
        ImagePlace::Address(address) => address.to_owned(),
        ImagePlace::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_addresses_or_data() {
        let image = |data: &str| Image { media_type: "image/png".into(), data: data.into() };
        assert_eq!(address(&image("https://h/a.png")), "https://h/a.png");
        assert_eq!(address(&image("aGk=")), "data:image/png;base64,aGk=");
        assert_eq!(
            source(&image("data:image/gif;base64,aGk=")),
            ImagePlace::Base64 { media_type: "image/gif", data: "aGk=" }
        );
    }
}
