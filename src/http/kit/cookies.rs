//! Cookies: which a browser sent, and how ours are set. Over https their names begin with `__Host-`, so that no other
//! host, and no page without encryption, can have set them.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::config::{Mode, Settings};

/// One of our cookies.
#[derive(Clone, Copy)]
pub struct Cookie {
    name: &'static str,
    /// Whether it opens something, or proves where a form came from. Others, such as the theme, need no strict name.
    is_secret: bool,
}

impl Cookie {
    pub const fn secret(name: &'static str) -> Cookie {
        Cookie { name, is_secret: true }
    }

    pub const fn plain(name: &'static str) -> Cookie {
        Cookie { name, is_secret: false }
    }

    /// Pages are at the checkout's URL. Plain http is for a sandbox: a live gateway sets strict cookies whatever its URL says,
    /// and no browser keeps them where a page came without encryption.
    fn is_https(settings: &Settings) -> bool {
        settings.mode == Mode::Live || settings.checkout_url.starts_with("https://")
    }

    fn full_name(self, is_https: bool) -> String {
        if self.is_secret && is_https { format!("__Host-{}", self.name) } else { self.name.into() }
    }

    /// What the browser holds. Of several by one name the first, which has the most exact path.
    pub fn sent(self, settings: &Settings, headers: &HeaderMap) -> Option<String> {
        let name = self.full_name(Self::is_https(settings));
        let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(sent, _)| *sent == name).map(|(_, value)| value.to_string())
    }

    /// The header that makes a browser hold this value for so many seconds; for none, that makes it forget it. The value is
    /// letters and digits.
    pub fn kept(self, settings: &Settings, value: &str, seconds: i64) -> HeaderValue {
        HeaderValue::try_from(self.text(Self::is_https(settings), value, seconds))
            .unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    pub fn forgotten(self, settings: &Settings) -> HeaderValue {
        self.kept(settings, "", 0)
    }

    fn text(self, is_https: bool, value: &str, seconds: i64) -> String {
        let name = self.full_name(is_https);
        let secure = if is_https { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_strict_where_browsers_allow_it() {
        let (session, theme) = (Cookie::secret("simgate"), Cookie::plain("theme"));
        for (cookie, is_https, text) in [
            (session, true, "__Host-simgate=x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"),
            (session, false, "simgate=x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax"),
            (theme, true, "theme=x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"),
        ] {
            assert_eq!(cookie.text(is_https, "x", 60), text);
        }
    }
}
