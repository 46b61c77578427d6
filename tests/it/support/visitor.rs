//! A person with a browser that keeps cookies: opens pages, sends the forms that stand on them, signs in by a mailed code.

use std::collections::BTreeMap;

use reqwest::redirect::Policy;

use crate::support::harness::{Gateway, Reply, client, reply};
use crate::support::logins::{code, elsewhere};

pub struct Visitor {
    client: reqwest::Client,
    base: String,
    from: String,
    pub cookies: BTreeMap<String, String>,
    /// What the browser says besides.
    pub headers: Vec<(&'static str, &'static str)>,
}

impl Visitor {
    /// Needs `trusted_proxies` to be 127.0.0.1, to come from an address of its own.
    pub fn new(gateway: &Gateway) -> Visitor {
        Visitor::at(&gateway.base)
    }

    pub fn at(base: &str) -> Visitor {
        Visitor {
            client: client().redirect(Policy::none()).build().unwrap(),
            base: base.into(),
            from: elsewhere(),
            cookies: BTreeMap::new(),
            headers: vec![("sec-fetch-site", "same-origin"), ("origin", "null")],
        }
    }

    /// The same browser, before anything changes in this one.
    pub fn again(&self) -> Visitor {
        Visitor { cookies: self.cookies.clone(), headers: self.headers.clone(), ..Visitor::at(&self.base) }
    }

    /// A request without anything of the browser's.
    pub fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.get(format!("{}{path}", self.base))
    }

    async fn asked(&mut self, request: reqwest::RequestBuilder) -> Reply {
        let held: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request = request.header("accept", "text/html").header("x-forwarded-for", &self.from);
        if !held.is_empty() {
            request = request.header("cookie", held.join("; "));
        }
        let answer = reply(request).await;
        for set in answer.headers.get_all("set-cookie") {
            let (pair, rest) = set.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            match rest.contains("Max-Age=0;") {
                true => self.cookies.remove(name),
                false => self.cookies.insert(name.into(), value.into()),
            };
        }
        answer
    }

    pub async fn open(&mut self, path: &str) -> Reply {
        self.asked(self.client.get(format!("{}{path}", self.base))).await
    }

    /// Sends what is given and nothing else.
    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let mut request = self.client.post(format!("{}{path}", self.base));
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        self.asked(request.header("content-type", "application/x-www-form-urlencoded").body(body)).await
    }

    /// Sends the form of a page that has this action, with its hidden fields and these.
    pub async fn submit(&mut self, page: &Reply, action: &str, fields: &[(&str, &str)]) -> Reply {
        let hidden = hidden(page, action);
        let mut all: Vec<(&str, &str)> =
            hidden.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        all.retain(|(name, _)| fields.iter().all(|(given, _)| given != name));
        all.extend(fields);
        self.post(action, &all).await
    }

    /// Signs in by a code from the mailbox.
    pub async fn sign_in(&mut self, gateway: &Gateway, email: &str) -> Reply {
        let page = self.open("/account").await;
        let asked = self.submit(&page, "/account/code", &[("email", email)]).await;
        assert_eq!(asked.status, 200, "{}", asked.text);
        let otp = code(gateway, email).await;
        let entered = self.submit(&asked, "/account/sign-in", &[("code", &otp)]).await;
        assert_eq!(entered.status, 303, "{}", entered.text);
        entered
    }

    pub async fn is_signed_in(&mut self) -> bool {
        let page = self.open("/account").await;
        assert_eq!(page.status, 200, "{}", page.text);
        page.text.contains("Your account</h1>")
    }
}

/// The hidden fields of the form that is sent to this action.
pub fn hidden(page: &Reply, action: &str) -> Vec<(String, String)> {
    let start = format!("method=\"post\" action=\"{action}\"");
    let (_, form) =
        page.text.split_once(&start).unwrap_or_else(|| panic!("no form {action} in {}", page.text));
    let form = form.split("</form>").next().unwrap();
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!("{name}=\"")).unwrap();
        rest.split('"').next().unwrap().to_string()
    };
    let tags = form.split("<input ").filter(|tag| tag.starts_with("type=\"hidden\""));
    tags.map(|tag| (attribute(tag, "name"), attribute(tag, "value"))).collect()
}

/// The cookies that an answer sets, as they are written.
pub fn set_cookies(answer: &Reply) -> Vec<String> {
    answer.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap().to_string()).collect()
}
