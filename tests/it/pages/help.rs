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
            let links = |other: &&Article| page.text.contains(&format!("href=\"/help/{}\"", other.id));
            assert_eq!(articles.iter().filter(links).count(), articles.len() - 1, "{path} leads on to all others");
            assert!(!page.text.contains("<script") && page.header("content-security-policy").contains("default-src 'none'"));
        }
        let contact = open(gateway, "/help/support/contact").await;
        assert!(contact.text.contains("none is published here"), "{}", contact.text);
        for path in ["/help/nope", "/help/install", "/help/install/ios/x", "/help/../Cargo.toml", "/help/%2e%2e%2f"] {
            assert_eq!(open(gateway, path).await.status, 404, "{path}");
        }
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
        assert!(refunds.text.contains("&lt;script&gt;") && !refunds.text.contains("<script"), "HTML is shown as text");
        assert!(open(gateway, "/help").await.text.contains("href=\"/help/vat\""));
        assert!(open(gateway, "/help/install/ios").await.text.contains("iPhone"));
        assert!(open(gateway, "/help/support/contact").await.text.contains("help@shop.example"));
    }
}
