//! Images as APIs take them: by address or by data.

use plimsoll_core::Image;

/// Where an image is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source<'a> {
    Address(&'a str),
    Base64 { media_type: &'a str, data: &'a str },
}

/// Tells an address, a `data:` address and bare base64 apart.
pub(super) fn source(image: &Image) -> Source<'_> {
    let data = &*image.data;
    if let Some((head, data)) = data.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        let media_type = head.split(';').next().filter(|kind| !kind.is_empty());
        return Source::Base64 { media_type: media_type.unwrap_or(&image.media_type), data };
    }
    if data.starts_with("http://") || data.starts_with("https://") {
        return Source::Address(data);
    }
    Source::Base64 { media_type: &image.media_type, data }
}

/// Returns one address that is or holds the image.
pub(super) fn address(image: &Image) -> String {
    match source(image) {
        Source::Address(address) => address.to_owned(),
        Source::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
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
            Source::Base64 { media_type: "image/gif", data: "aGk=" }
        );
    }
}
