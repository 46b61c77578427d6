//! Enums whose variants are words: in the database, in JSON, in settings and on the command line.

/// An enum whose variants each have one word. It gets `as_str`; and, when listed after the name, `ALL`, which lists the
/// variants in their order, and `parse`, which finds a variant by its exact word.
macro_rules! words {
    ($(#[$about:meta])* $vis:vis enum $name:ident: ALL, parse $words:tt) => {
        $crate::domain::words::words!($(#[$about])* $vis enum $name: ALL $words);
        $crate::domain::words::words!(@parse $vis $name $words);
    };
    ($(#[$about:meta])* $vis:vis enum $name:ident: ALL $words:tt) => {
        $crate::domain::words::words!($(#[$about])* $vis enum $name $words);
        $crate::domain::words::words!(@ALL $vis $name $words);
    };
    ($(#[$about:meta])* $vis:vis enum $name:ident: parse $words:tt) => {
        $crate::domain::words::words!($(#[$about])* $vis enum $name $words);
        $crate::domain::words::words!(@parse $vis $name $words);
    };
    (
        $(#[$about:meta])*
        $vis:vis enum $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name {
            $($(#[$note])* $variant,)+
        }

        impl $name {
            $vis fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }
    };
    (@ALL $vis:vis $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)+ }) => {
        impl $name {
            $vis const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];
        }
    };
    (@parse $vis:vis $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)+ }) => {
        impl $name {
            $vis fn parse(text: &str) -> Option<$name> {
                match text {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    words! {
        enum Season: ALL, parse {
            Spring = "SPRING",
            /// When people travel.
            Summer = "SUMMER",
        }
    }

    #[test]
    fn words_go_both_ways() {
        assert_eq!(Season::ALL, [Season::Spring, Season::Summer]);
        for season in Season::ALL {
            assert_eq!(Season::parse(season.as_str()), Some(season));
        }
        for other in ["", "summer", "SUMMER ", "WINTER"] {
            assert_eq!(Season::parse(other), None);
        }
    }
}
