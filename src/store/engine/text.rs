//! Texts of statements, joined at compile time, so that a list of columns is written only once: `columns!` declares
//! what is read of a noun, `values!` what is written.

/// The longest text that we make.
const MOST: usize = 8_192;

/// A text under construction.
pub struct Draft {
    bytes: [u8; MOST],
    length: usize,
}

impl Draft {
    const fn new() -> Draft {
        Draft { bytes: [0; MOST], length: 0 }
    }

    const fn add(&mut self, text: &str) {
        let (text, mut at) = (text.as_bytes(), 0);
        while at < text.len() {
            self.bytes[self.length] = text[at];
            self.length += 1;
            at += 1;
        }
    }

    /// A number below 100.
    const fn add_number(&mut self, number: usize) {
        if number >= 10 {
            self.bytes[self.length] = b'0' + (number / 10) as u8;
            self.length += 1;
        }
        self.bytes[self.length] = b'0' + (number % 10) as u8;
        self.length += 1;
    }

    pub const fn length(&self) -> usize {
        self.length
    }

    pub const fn bytes<const LENGTH: usize>(&self) -> [u8; LENGTH] {
        let (mut bytes, mut at) = ([0; LENGTH], 0);
        while at < LENGTH {
            bytes[at] = self.bytes[at];
            at += 1;
        }
        bytes
    }
}

pub const fn as_text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("texts are joined whole"),
    }
}

pub const fn joined(between: &str, parts: &[&str]) -> Draft {
    let (mut draft, mut nth) = (Draft::new(), 0);
    while nth < parts.len() {
        if nth > 0 {
            draft.add(between);
        }
        draft.add(parts[nth]);
        nth += 1;
    }
    draft
}

/// `?1, ?2`: a placeholder for each value of these groups.
pub const fn place_each(groups: &[&[&str]]) -> Draft {
    numbered(groups, false)
}

/// `CAST(?1 AS TEXT[]), CAST(?2 AS BIGINT[])`: a list for each value of these groups.
pub const fn list_each(groups: &[&[&str]]) -> Draft {
    numbered(groups, true)
}

const fn numbered(groups: &[&[&str]], as_lists: bool) -> Draft {
    let (mut draft, mut number, mut group) = (Draft::new(), 0, 0);
    while group < groups.len() {
        let mut nth = 0;
        while nth < groups[group].len() {
            number += 1;
            draft.add(if number > 1 { ", " } else { "" });
            draft.add(if as_lists { "CAST(?" } else { "?" });
            draft.add_number(number);
            if as_lists {
                assert!(!groups[group][nth].is_empty(), "a list needs the type of its values");
                draft.add(" AS ");
                draft.add(groups[group][nth]);
                draft.add("[])");
            }
            nth += 1;
        }
        group += 1;
    }
    draft
}

/// A draft as a constant.
macro_rules! const_text {
    ($draft:expr) => {{
        const DRAFT: $crate::store::engine::text::Draft = $draft;
        const BYTES: [u8; DRAFT.length()] = DRAFT.bytes();
        $crate::store::engine::text::as_text(&BYTES)
    }};
}

/// Constant texts, one after another: `concat!` for more than literals.
macro_rules! text {
    ($($part:expr),+ $(,)?) => {
        $crate::store::engine::const_text!($crate::store::engine::text::joined("", &[$($part),+]))
    };
}

/// `?1, ?2, …` for the values of these declarations.
macro_rules! places {
    ($($values:ident),+) => { $crate::store::engine::const_text!($crate::store::engine::text::place_each(&[$($values::TYPES),+])) };
}

/// A list for each value of these declarations, as PostgreSQL's `unnest` takes them.
macro_rules! lists {
    ($($values:ident),+) => { $crate::store::engine::const_text!($crate::store::engine::text::list_each(&[$($values::TYPES),+])) };
}

/// The columns of these declarations.
macro_rules! names {
    ($($values:ident),+) => { $crate::store::engine::const_text!($crate::store::engine::text::joined(", ", &[$($values::NAMES),+])) };
}

/// Stores the values of these declarations as a new row.
macro_rules! insert_into {
    ($table:literal, $($values:ident),+) => {
        $crate::store::engine::text!("INSERT INTO ", $table, " (", $crate::store::engine::names!($($values),+), ") VALUES (", $crate::store::engine::places!($($values),+), ")")
    };
}

/// Declares which columns a struct is read from, in their order: `Stored::COLUMNS` lists them for a SELECT, and `Tx`
/// reads them. A column has its field's name, with an alias after `in "a"`, or is given: `field = "a.column"`. Several
/// columns for one field have its type: `field: Type = Type::COLUMNS`. When fields are not columns, the struct is built
/// after `=>`.
macro_rules! columns {
    (@all $prefix:expr; $name:ident { $($field:ident $(: $type:ty)? $(= $sql:expr)?),* $(,)? } => $made:expr) => {
        impl $crate::store::engine::Stored for $name {
            const COLUMNS: &'static str = $crate::store::engine::const_text!($crate::store::engine::text::joined(
                ", ", &[$($crate::store::engine::columns!(@sql $prefix; $field $(= $sql)?)),*]));
        }
        impl $crate::store::engine::Columns for $name {
            const WIDTH: usize = 0 $(+ $crate::store::engine::columns!(@width $($type)?))*;
            fn read(fields: &mut $crate::store::engine::Fields) -> $crate::error::Result<$name> {
                $(let $field $(: $type)? = $crate::store::engine::columns!(@next fields $($type)?);)*
                Ok($made)
            }
        }
        impl $crate::store::engine::Columns for Option<$name> {
            const WIDTH: usize = <$name as $crate::store::engine::Columns>::WIDTH;
            fn read(fields: &mut $crate::store::engine::Fields) -> $crate::error::Result<Option<$name>> {
                fields.unless_null()
            }
        }
    };
    (@sql $prefix:expr; $field:ident) => { concat!($prefix, stringify!($field)) };
    (@sql $prefix:expr; $field:ident = $sql:expr) => { $sql };
    (@width) => { 1 };
    (@width $type:ty) => { <$type as $crate::store::engine::Columns>::WIDTH };
    (@next $fields:ident) => { $fields.column()? };
    (@next $fields:ident $type:ty) => { <$type as $crate::store::engine::Columns>::read($fields)? };
    ($name:ident in $alias:literal { $($fields:tt)* } => $made:expr) => {
        $crate::store::engine::columns! { @all concat!($alias, "."); $name { $($fields)* } => $made }
    };
    ($name:ident { $($fields:tt)* } => $made:expr) => {
        $crate::store::engine::columns! { @all ""; $name { $($fields)* } => $made }
    };
    ($name:ident $(in $alias:literal)? { $($field:ident $(: $type:ty)? $(= $sql:expr)?),* $(,)? }) => {
        $crate::store::engine::columns! { $name $(in $alias)? { $($field $(: $type)? $(= $sql)?),* } => $name { $($field),* } }
    };
}

/// Declares what is written of something: each column, its type when values come in lists, and its value when it is
/// not the field of that name. `NAMES` lists the columns for an INSERT; `params` gives the values in the same order.
macro_rules! values {
    ($(#[$doc:meta])* $name:ident($from:ident: $type:ty $(, $more:ident: $its:ty)*) {
        $($field:ident $(: $sql:ident)? $(= $value:expr)?),* $(,)?
    }) => {
        $(#[$doc])*
        struct $name;

        impl $name {
            const NAMES: &'static str =
                $crate::store::engine::const_text!($crate::store::engine::text::joined(", ", &[$(stringify!($field)),*]));
            const TYPES: &'static [&'static str] = &[$($crate::store::engine::values!(@type $($sql)?)),*];

            fn params<'a>($from: &'a $type $(, $more: $its)*) -> [$crate::store::engine::Param<'a>; $name::TYPES.len()] {
                [$($crate::store::engine::Param::from($crate::store::engine::values!(@value $from.$field $(= $value)?))),*]
            }
        }
    };
    (@type) => { "" };
    (@type $sql:ident) => { stringify!($sql) };
    (@value $from:ident.$field:ident) => { &$from.$field };
    (@value $from:ident.$field:ident = $value:expr) => { $value };
}

pub(crate) use {columns, const_text, insert_into, lists, names, places, text, values};

#[cfg(test)]
mod tests {
    use crate::store::engine::{Param, Stored};

    struct Cat {
        name: String,
        lives: i64,
    }

    columns! { Cat in "c" { name, lives = "c.rest" } }
    values! { NewCat(cat: Cat, born: i64) { name: TEXT, born: BIGINT = born, rest: BIGINT = cat.lives } }
    values! { Owner(owner: str) { owner: TEXT = owner } }

    #[test]
    fn texts_follow_from_declarations() {
        assert_eq!(Cat::COLUMNS, "c.name, c.rest");
        assert_eq!(
            insert_into!("cats", NewCat, Owner),
            "INSERT INTO cats (name, born, rest, owner) VALUES (?1, ?2, ?3, ?4)"
        );
        assert_eq!(lists!(NewCat), "CAST(?1 AS TEXT[]), CAST(?2 AS BIGINT[]), CAST(?3 AS BIGINT[])");
        assert_eq!(super::as_text(&super::place_each(&[&[""; 12]]).bytes::<8>()), "?1, ?2, ");
        let cat = Cat { name: "Tom".into(), lives: 7 };
        let [Param::Text("Tom"), Param::Int(3), Param::Int(7)] = NewCat::params(&cat, 3) else { panic!() };
        let [Param::Text("Ann")] = Owner::params("Ann") else { panic!() };
    }
}
