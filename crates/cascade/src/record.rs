//! `record!` and `words!`: a type, its decoder and its JSON Schema from one table, so that they cannot disagree.

/// Declares a struct that is read from a map.
///
/// `field as "key" | "alias": Type = default` — without `as` the key is the field's name, without a default it is required.
/// `short` leaves [`Decode`](crate::decode::Decode) to be written by hand, for a record that has other forms than a map.
macro_rules! record {
    (
        $(#[doc = $doc:literal])+
        $visibility:vis struct $name:ident $($short:ident)? {
            $(
                $(#[doc = $about:literal])*
                $field:ident $(as $key:literal)? $(| $alias:literal)* : $type:ty $(= $default:expr)?,
            )*
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq)]
        $visibility struct $name {
            $( $(#[doc = $about])* pub $field: $type, )*
        }

        impl $name {
            pub(crate) const KEYS: &'static [$crate::decode::Names] = &[
                $( $crate::decode::Names {
                    key: record!(@key $field $($key)?),
                    aliases: &[$($alias),*],
                }, )*
            ];

            /// Reads the form that is a map.
            pub(crate) fn decode_map(
                node: &$crate::node::Node,
                decoder: &mut $crate::decode::Decoder,
            ) -> Option<Self> {
                let mut found = decoder.fields(node, stringify!($name), Self::KEYS)?.into_iter();
                $(
                    let $field: Option<$type> = match found.next().flatten() {
                        Some((key, value)) => {
                            let read = decoder.under(key, |decoder| {
                                <$type as $crate::decode::Decode>::decode(value, decoder)
                            });
                            record!(@read read $($default)?)
                        }
                        None => record!(@absent node, decoder, record!(@key $field $($key)?), stringify!($name) $(, $default)?),
                    };
                )*
                Some(Self { $( $field: $field? ),* })
            }

            /// Returns the JSON Schema of the form that is a map.
            pub(crate) fn schema_map(definitions: &mut $crate::decode::Definitions) -> serde_json::Value {
                let name = stringify!($name);
                let place = format!("#/$defs/{name}");
                if definitions.contains_key(name) {
                    return serde_json::json!({"$ref": place});
                }
                // A record that holds itself finds its name taken.
                definitions.insert(name, serde_json::Value::Null);
                let fields = vec![
                    $( $crate::schema::Field {
                        key: record!(@key $field $($key)?),
                        aliases: &[$($alias),*],
                        about: concat!($($about),*),
                        schema: <$type as $crate::decode::Decode>::schema(definitions),
                        is_required: record!(@required $($default)?),
                    }, )*
                ];
                let schema = $crate::schema::record(name, concat!($($doc),+), fields);
                definitions.insert(name, schema);
                serde_json::json!({"$ref": place})
            }
        }

        record!(@decode $name $($short)?);
    };

    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    // A field that could not be read was reported; going on finds the other problems.
    (@read $read:ident) => { $read };
    (@read $read:ident $default:expr) => { $read.or_else(|| Some($default)) };
    (@absent $node:expr, $decoder:expr, $key:expr, $name:expr) => {{
        let said = format!("{} needs `{}`", $crate::decode::spoken($name), $key);
        $decoder.error($node, $crate::problem::Kind::Shape, said);
        None
    }};
    (@absent $node:expr, $decoder:expr, $key:expr, $name:expr, $default:expr) => { Some($default) };
    (@required) => { true };
    (@required $default:expr) => { false };
    (@decode $name:ident) => {
        impl $crate::decode::Decode for $name {
            fn decode(
                node: &$crate::node::Node,
                decoder: &mut $crate::decode::Decoder,
            ) -> Option<Self> {
                Self::decode_map(node, decoder)
            }

            fn schema(definitions: &mut $crate::decode::Definitions) -> serde_json::Value {
                Self::schema_map(definitions)
            }
        }
    };
    (@decode $name:ident short) => {};
}

/// Declares an enum that is read from a word; further words mean the same.
macro_rules! words {
    (
        $(#[doc = $doc:literal])+
        pub enum $name:ident {
            $( $(#[doc = $about:literal])* $variant:ident $word:literal $(| $alias:literal)*, )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[doc = $about])* $variant, )+
        }

        impl $name {
            /// Returns the word that cascades have for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        impl $crate::decode::Decode for $name {
            fn decode(
                node: &$crate::node::Node,
                decoder: &mut $crate::decode::Decoder,
            ) -> Option<Self> {
                match node.scalar() {
                    $( Some($word $(| $alias)*) => Some(Self::$variant), )+
                    _ => decoder.expected_word(node, &[$($word),+]),
                }
            }

            fn schema(_: &mut $crate::decode::Definitions) -> serde_json::Value {
                serde_json::json!({"enum": [$($word $(, $alias)*),+]})
            }
        }
    };
}
