//! The help pages: the built-in articles, and an operator's own over them.

use simgate::knowledge::Article;

use crate::support::browser::open;
use crate::support::harness::both_databases;

/// Relative to where cargo runs the tests: the crate's own folder.
const FOLDER: &str = "tests/it/pages/knowledge";

both_databases! {
    async fn every_article_has_a_page(gateway) {
        let index = open(gateway, "/help").await;
        assert_eq!(index.status, 200);
        let articles = gateway.app.knowledge.articles();
        assert!(articles.len() >= 9);
        for article in articles {
            let path = format!("/help/{}", article.id);
            assert!(index.text.contains(&format!("href=\"{path}\"")), "{path}");
            let page = open(gateway, &path).await;
            assert_eq!(page.status, 200, "{path}");
            assert!(page.text.contains(&format!("<h1>{}</h1>", article.title)) && page.text.contains("<li>"), "{path}");
            // The foot of every page leads to the refunds too.
            let links = |other: &&Article| other.id != article.id && page.text.contains(&format!("href=\"/help/{}\"", other.id));
            assert_eq!(articles.iter().filter(links).count(), articles.len() - 1, "{path} leads on to all others");
            assert_eq!(page.header("x-robots-tag"), "", "{path}");
            assert!(!page.text.contains("<script") && page.header("content-security-policy").contains("default-src 'none'"));
        }
        let contact = open(gateway, "/help/support/contact").await;
        assert!(contact.text.contains("none is published here"), "{}", contact.text);
        for path in ["/help/nope", "/help/install", "/help/install/ios/x", "/help/../Cargo.toml", "/help/%2e%2e%2f"] {
            assert_eq!(open(gateway, path).await.status, 404, "{path}");
        }
    }

    async fn articles_are_grouped_and_searched(gateway) {
        let index = open(gateway, "/help").await;
        for section in ["Install an eSIM", "When something does not work", "Money and refunds"] {
            assert_eq!(index.text.matches(&format!("<h2>{section}</h2>")).count(), 1, "{section}");
        }
        let found = async |text: &str| {
            let query = form_urlencoded::Serializer::new(String::new()).append_pair("q", text).finish();
            let page = open(gateway, &format!("/help?{query}")).await;
            assert!(page.status == 200 && page.header("x-robots-tag").contains("noindex"), "{text}");
            let (_, part) = page.text.split_once("data-filter-part").unwrap();
            part.split("id=\"check\"").next().unwrap().to_string()
        };
        let first = |part: &str| part.split("href=\"/help/").nth(1).unwrap().split('"').next().unwrap().to_string();
        for (text, article) in [
            ("refund", "policy/refunds"),
            ("refu", "policy/refunds"),
            ("Samsung", "install/samsung"),
            ("no internet roaming", "trouble/no-data"),
            ("How do I get my money back?", "policy/refunds"),
        ] {
            assert_eq!(first(&found(text).await), article, "{text}");
        }
        let roaming = found("roaming").await;
        assert!(roaming.contains("<strong>Roaming</strong>") || roaming.contains("<strong>roaming</strong>"), "{roaming}");
        let nothing = found("samsung refund").await;
        assert!(nothing.contains("No article has all of these words.") && nothing.contains("Perhaps one of these"), "{nothing}");
        assert!(found("qwertz").await.contains("href=\"/help/support/contact\""), "the way to a person");
        assert!(found("  ").await.contains("<h2>Money and refunds</h2>"), "an empty search is none");
        let hostile = found("<script>alert(1)</script>").await;
        assert!(!hostile.contains("<script>"), "{hostile}");
    }

    async fn a_device_is_found_by_its_name(gateway) {
        let told = async |name: &str| {
            let query = form_urlencoded::Serializer::new(String::new()).append_pair("q", name).finish();
            let page = open(gateway, &format!("/help/devices?{query}")).await;
            assert_eq!(page.status, 200, "{name}");
            assert_eq!(page.text.matches("<h1").count(), 1);
            let (_, headline) = page.text.split_once("<h1").unwrap();
            let headline = headline.split_once('>').unwrap().1.split("</h1>").next().unwrap().to_string();
            (headline, page.text)
        };
        for (name, expected) in [
            ("iPhone 13", "Yes, the Apple iPhone 13 takes an eSIM"),
            ("iphone xs", "Yes, the Apple iPhone XS takes an eSIM"),
            ("iPhone X", "No, the Apple iPhone X does not take our eSIMs"),
            ("iPhone SE", "Some Apple iPhone SE take an eSIM, some do not"),
            ("Samsung S23", "Yes, the Samsung Galaxy S23 takes an eSIM"),
            ("iPhone 1", "We do not know “iPhone 1”"),
            ("Nokia 3310", "We do not know “Nokia 3310”"),
        ] {
            assert_eq!(told(name).await.0, expected);
        }
        let (_, unknown) = told("iPhnoe 13").await;
        assert!(unknown.contains("href=\"/help/devices?q=Apple+iPhone+13\"") && unknown.contains("*#06#"), "{unknown}");
        let (which, several) = told("iphone").await;
        assert!(which == "Which iphone is it?" && several.contains("href=\"/help/devices?q=Apple+iPhone+7+Plus\""), "{several}");
        let (_, hostile) = told("<img src=x>").await;
        assert!(hostile.contains("&#60;img") && !hostile.contains("<img src"), "{hostile}");
        let empty = open(gateway, "/help/devices?q=").await;
        assert!(empty.text.contains("<h1>Does my phone take an eSIM?</h1>"));
        let checkout = open(gateway, "/checkout?plan=JP-1GB-7D").await;
        assert!(checkout.text.contains("action=\"/help/devices\""));
        // Who asks at the checkout is led back to it, also by another name.
        let unsure = open(gateway, "/help/devices?q=iphone&plan=JP-1GB-7D").await;
        assert!(unsure.text.contains("?q=Apple+iPhone+7&#38;plan=JP-1GB-7D"), "{}", unsure.text);
        let sure = open(gateway, "/help/devices?q=iPhone+13&plan=JP-1GB-7D").await;
        assert!(sure.text.contains("href=\"/checkout?plan=JP-1GB-7D\">Back to Japan 1 GB 7 days"), "{}", sure.text);
        let unknown = open(gateway, "/help/devices?q=iPhone+13&plan=%22%3E%3Cb%3E").await;
        assert!(unknown.text.contains("Find a plan") && !unknown.text.contains("<b>"), "{}", unknown.text);
    }

    /// Keywords help to find an article; nobody reads them.
    async fn an_article_says_nothing_of_its_keywords(gateway) {
        for article in gateway.app.knowledge.articles() {
            let page = open(gateway, &format!("/help/{}", article.id)).await;
            assert!(!page.text.contains("keywords:") && !article.text.contains("keywords:"), "{}", article.id);
        }
        let found = |topic: &str| gateway.app.knowledge.search(topic)[0].id.clone();
        assert_eq!(found("how do I get my money back"), "policy/refunds");
        assert_eq!(found("qwertz uiop"), "support/contact");
    }

    async fn an_operators_own_articles_win(gateway) with [("knowledge_dir", FOLDER), ("support_contact", "help@shop.example")] {
        let refunds = open(gateway, "/help/policy/refunds").await;
        assert!(refunds.text.contains("<h1>Our refunds</h1>") && refunds.text.contains("help@shop.example"), "{}", refunds.text);
        assert!(open(gateway, "/help").await.text.contains("<h2>More</h2>"), "articles in no folder have a section");
        assert!(open(gateway, "/help").await.text.contains("mailto:help@shop.example"));
        let own = open(gateway, "/help/devices?q=Acme+Rocket+2").await;
        assert!(own.text.contains("Yes, the Acme Rocket 2 takes an eSIM") && own.text.contains("Not those of 2019."), "{}", own.text);
        assert!(open(gateway, "/help/devices?q=iPhone+13").await.text.contains("We do not know"), "their list is the list");
        assert!(refunds.text.contains("&lt;script&gt;") && !refunds.text.contains("<script"), "HTML is shown as text");
        assert!(open(gateway, "/help").await.text.contains("href=\"/help/vat\""));
        assert!(open(gateway, "/help/install/ios").await.text.contains("iPhone"));
        assert!(open(gateway, "/help/support/contact").await.text.contains("help@shop.example"));
    }
}
