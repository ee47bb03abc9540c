use super::*;

fn kinds(text: &str) -> Vec<(&'static str, &str)> {
    find(text).iter().map(|f| (f.kind.as_str(), &text[f.bytes.clone()])).collect()
}

/// A token made here from parts, so that no scanner takes this file for a leak.
fn made(prefix: &str, length: usize) -> String {
    const LETTERS: &[u8] = b"q7Zk2Vx9Lm4Tb8Rw1Ns5Hc3Jd6Pf0Gy";
    let body = (0..length).map(|at| LETTERS[(at * 7 + length) % LETTERS.len()] as char);
    format!("{prefix}{}", body.collect::<String>())
}

fn made_of(prefix: &str, letters: &str, length: usize) -> String {
    let letters = letters.as_bytes();
    let body = (0..length).map(|at| letters[at * 5 % letters.len()] as char);
    format!("{prefix}{}", body.collect::<String>())
}

#[test]
fn personal_data_is_found() {
    for (kind, value) in [
        ("email", "jane.doe+x@mail.example.com"),
        ("phone", "+44 20 7946 0958"),
        ("phone", "+14155552671"),
        ("phone", "(415) 555-2671"),
        ("phone", "415-555-2671"),
        ("phone", "06 12 34 56 78"),
        ("payment_card", "4111 1111 1111 1111"),
        ("payment_card", "5500-0000-0000-0004"),
        ("payment_card", "378282246310005"),
        ("payment_card", "6011111111111117"),
        ("payment_card", "4111.1111.1111.1111"),
        ("payment_card", "4111_1111_1111_1111"),
        ("payment_card", "4111\t1111\t1111\t1111"),
        ("payment_card", "4539148803436467.0"),
        ("payment_card", "4539148803436467.000"),
        ("payment_card", "4.539148803436467e15"),
        ("payment_card", "4.539148803436467E+15"),
        ("payment_card", "4539148803436467e0"),
        ("payment_card", "45391488034364670e-1"),
        ("payment_card", "3.78282246310005e14"),
        ("iban", "DE89.3704.0044.0532.0130.00"),
        ("iban", "DE89_3704_0044_0532_0130_00"),
        ("iban", "DE89-3704-0044-0532-0130-00"),
        ("iban", "DE89370400440532013000"),
        ("iban", "GB29 NWBK 6016 1331 9268 19"),
        ("national_id", "078-05-1120"),
        ("national_id", "AB123456C"),
        ("national_id", "AB 12 34 56 C"),
        ("national_id", "12345678Z"),
        ("national_id", "X1234567L"),
        ("national_id", "529.982.247-25"),
        ("national_id", "11010519491231002X"),
    ] {
        for text in [value.to_owned(), format!("it is {value}, he said"), format!("\"{value}\"\n")]
        {
            assert_eq!(kinds(&text), [(kind, value)], "{text}");
        }
    }
    assert_eq!(kinds("call 5552671 or phone: 0301234567"), [("phone", "0301234567")]);
}

#[test]
fn tokens_are_found_by_their_form() {
    let hex = "0123456789abcdef";
    for (kind, value) in [
        ("aws_key", made_of("AKIA", "QZ7XK2M4WBTR3NCH", 16)),
        ("github_token", made("ghp_", 36)),
        ("github_token", made("github_pat_", 82)),
        ("gitlab_token", made("glpat-", 20)),
        ("openai_key", made("sk-proj-", 48)),
        ("openai_key", made("sk-", 48)),
        ("anthropic_key", made("sk-ant-api03-", 90)),
        ("google_key", made("AIza", 35)),
        ("slack_token", made("xoxb-123456789012-", 24)),
        ("stripe_key", made("sk_live_", 24)),
        ("service_token", made("hf_", 34)),
        ("service_token", made("npm_", 36)),
        ("service_token", made_of("dop_v1_", hex, 64)),
        ("jwt", format!("{}.{}.{}", made("eyJ", 20), made("eyJ", 40), made("", 43))),
    ] {
        for text in [
            value.clone(),
            format!("export X={value}\n"),
            format!("{{\"k\": \"{value}\"}}"),
            format!("a\\n{value}\\nb"),
        ] {
            assert_eq!(kinds(&text), [(kind, value.as_str())], "{text}");
        }
        assert!(kinds(&format!("x{value}")).is_empty(), "within a word: {value}");
    }
}

#[test]
fn what_has_no_form_is_found_by_its_name() {
    let value = made("", 32);
    for text in [
        format!("api_key = \"{value}\""),
        format!("\"clientSecret\": \"{value}\","),
        format!("{{\\\"access_token\\\": \\\"{value}\\\"}}"),
        format!("SECRET_KEY_BASE={value}\n"),
        format!("auth-token: {value}"),
        format!("config['api_key'] = '{value}'"),
    ] {
        assert_eq!(kinds(&text), [("secret", value.as_str())], "{text}");
    }
    let header = format!("Authorization: Bearer {value}");
    assert_eq!(kinds(&header), [("auth_header", value.as_str())]);
    let basic = "curl -H 'Authorization: Basic amFuZTpodW50ZXIyIQ=='";
    assert_eq!(kinds(basic), [("auth_header", "amFuZTpodW50ZXIyIQ==")]);
    assert_eq!(kinds("DB_PASSWORD=hunter2!x"), [("password", "hunter2!x")]);
    assert_eq!(kinds("password: \"tr0ub4dor&3\""), [("password", "tr0ub4dor&3")]);
    assert_eq!(kinds("postgres://app:s3cr3t@db/x"), [("url_password", "s3cr3t")]);
}

#[test]
fn a_private_key_is_found_whole() {
    let body = format!("{}\n{}\n", made("", 64), made("", 64));
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----");
    let text = format!("see\n{key}\nend");
    assert_eq!(kinds(&text), [("private_key", key.as_str())]);
    let escaped = key.replace('\n', "\\n");
    assert_eq!(kinds(&format!("\"{escaped}\"")), [("private_key", escaped.as_str())]);
    assert!(kinds("if line == '-----BEGIN PRIVATE KEY-----':").is_empty(), "no key");
}

#[test]
fn code_hashes_and_times_are_nothing() {
    for text in [
        "commit 3fa9c1d2e5b6a7980c1d2e3f4a5b6c7d8e9f0a1b",
        "id: f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "2025-12-18T10:20:30.123456Z 1734517230123 1734517230123456 1734517230123456789",
        "token = tokens[i]; max_tokens: 4096, next_page_token=\"CAUQAA12345678901234\"",
        "password = getpass.getpass(); api_key = os.environ[\"OPENAI_API_KEY_2\"]",
        "secret: ${{ secrets.DEPLOY_KEY_2024_PRODUCTION }}",
        "git clone git@github.com:a/b.git; import x from 'lib@1.2.3'; icon@2x.png",
        "@app.route('/x')\n@pytest.mark.parametrize",
        "127.0.0.1:8080 192.168.100.200 10.0.0.1",
        "range(1000, 2000) 0.4111111111111111 1e-10 v1.22.333.4444",
        "4.2e15 4.539148803436467e14 4539148803436467.25 0.4539148803436467 1.4539148803436467",
        "1000\t2000\t3000\t4000 1_000_000 call 1_000_000 v4.539148803436467e15",
        "price 1,234,567.89 in 12-34-56",
        "+1734517230123\n-1734517230124\n",
        "01 02 03 04 05 06 07 08 09 10\n11 12",
        "lines 120-240, 300-4000-50",
        "class=\"sk-circle-fade-dot sk-folding-cube\"",
        "password: string; token: Token; secret=None; token_type: \"bearer\"",
        "postgres://user:password@localhost/db redis://localhost:6379/0",
        "20231201Z 20240101T",
        "const ChangePassword: MSV1_0_PROTOCOL_MESSAGE_TYPE = 5;",
        "pub const ND_IOCTL_CALL: u32 = 3225439754; tool_calls: 1234567890",
        "ssh://jane@example.com/a ftp://jane:password@example.com/",
    ] {
        assert_eq!(kinds(text), [], "{text}");
    }
}

#[test]
fn redaction_leaves_neither_value_nor_length() {
    let text = "mail jane@example.com, key sk-ant-api03-Zk2Vx9Lm4Tb8Rw1Ns5Hc3Jd6Pf0Gy7";
    let (all, flags) = redact(text, Handling::REDACT);
    assert_eq!(all, "mail [redacted:email], key [redacted:anthropic_key]");
    assert_eq!(told(&flags), "1 email, 1 anthropic_key");
    let (secrets, flags) = redact(text, Safety::default().summariser);
    assert_eq!(secrets, "mail jane@example.com, key [redacted:anthropic_key]");
    assert_eq!(told(&flags), "1 email, 1 anthropic_key");
    let (none, flags) =
        redact(text, Handling { personal: Action::Ignore, secrets: Action::Ignore });
    assert!(none == text && flags.is_empty());
    assert!(!format!("{:?}", find(text)).contains("jane"));
}

#[test]
fn every_setting_of_handling_changes_something() {
    let text = format!("jane@example.com {}", made("ghp_", 36));
    let Handling { personal, secrets } = Handling::default();
    assert_eq!((personal, secrets), (Action::Flag, Action::Flag));
    let base = redact(&text, Handling::default());
    for changed in [
        Handling { personal: Action::Redact, ..Handling::default() },
        Handling { personal: Action::Ignore, ..Handling::default() },
        Handling { secrets: Action::Redact, ..Handling::default() },
        Handling { secrets: Action::Ignore, ..Handling::default() },
    ] {
        assert_ne!(base, redact(&text, changed), "{changed:?}");
    }
}

#[test]
fn messages_are_handled_in_texts_results_and_arguments() {
    use crate::message::{Role, ToolCall};
    let call = ToolCall {
        id: "1".into(),
        name: "send".into(),
        arguments: r#"{"to":"jane@example.com"}"#.into(),
    };
    let message = Message::new(
        Role::Assistant,
        vec![Block::Text("to jane@example.com".into()), Block::ToolCall(call)],
    );
    let (changed, flags) = handle_message(&message, Handling::REDACT);
    let shown = changed.expect("two addresses").shown();
    assert_eq!(shown, "to [redacted:email]\nsend {\"to\":\"[redacted:email]\"}");
    assert_eq!(flags[&SensitiveKind::Email], 2);
    assert!(handle_message(&message, Handling::default()).0.is_none());
}

#[test]
fn messages_are_handled_in_thinking_and_in_addresses_of_images() {
    use crate::message::{Image, Role, Thinking, ToolResult};
    let image = |data: &str| Image { media_type: "image/png".into(), data: data.into() };
    let address = || image("https://example.org/x.png?user=jane@example.com");
    let data = image("data:image/png;base64,aGVsbG8=");
    let result = ToolResult {
        call_id: "1".into(),
        text: "seen".into(),
        images: vec![address(), data.clone()],
        is_error: false,
    };
    let thinking =
        |text: &str| Block::Thinking(Thinking { text: text.into(), signature: "signed".into() });
    let blocks = vec![
        thinking("she is jane@example.com"),
        thinking("nothing"),
        Block::Image(address()),
        Block::Image(data.clone()),
        Block::ToolResult(result),
    ];
    let message = Message::new(Role::User, blocks);
    let (changed, flags) = handle_message(&message, Handling::REDACT);
    let changed = changed.expect("three addresses");
    assert_eq!(flags[&SensitiveKind::Email], 3);
    let written = serde_json::to_string(&changed).expect("JSON");
    assert!(!written.contains("jane"), "{written}");
    let redacted = Thinking { text: "she is [redacted:email]".into(), signature: "".into() };
    assert_eq!(changed.blocks[0], Block::Thinking(redacted));
    assert_eq!(changed.blocks[1], message.blocks[1]);
    assert_eq!(changed.blocks[3], message.blocks[3]);
    let Block::ToolResult(result) = &changed.blocks[4] else { panic!("a result") };
    assert_eq!((&*result.text, &result.images[1]), ("seen", &data));
}

#[test]
fn arguments_stay_json() {
    use crate::message::{Role, ToolCall};
    let secret = made("", 32);
    let arguments = format!(r#"{{"card": 4111111111111111, "api_key": "{secret}", "n": 7}}"#);
    let call = ToolCall { id: "1".into(), name: "pay".into(), arguments: arguments.into() };
    let message = Message::new(Role::Assistant, vec![Block::ToolCall(call)]);
    let (changed, _) = handle_message(&message, Handling::REDACT);
    assert_eq!(
        changed.expect("a card").shown(),
        "\npay {\"card\":\"[redacted:payment_card]\",\"api_key\":\"[redacted:secret]\",\"n\":7}"
    );
}

#[test]
fn numbers_of_arguments_are_read_however_they_are_written() {
    use crate::message::{Role, ToolCall};
    for number in ["4539148803436467.0", "-4539148803436467", "4.539148803436467e15"] {
        let arguments = format!(r#"{{"card":{number},"n":7}}"#);
        let call = ToolCall { id: "1".into(), name: "pay".into(), arguments: arguments.into() };
        let message = Message::new(Role::Assistant, vec![Block::ToolCall(call)]);
        let shown = handle_message(&message, Handling::REDACT).0.expect("a card").shown();
        assert!(shown.contains("[redacted:payment_card]\",\"n\":7}"), "{shown}");
    }
}

#[test]
fn a_number_that_the_text_cuts_off_is_read_to_its_end() {
    let whole = "DE89 3704 0044 0532 0130 00";
    assert_eq!(find(whole).len(), 1);
    for end in 0..whole.len() {
        let is_account = |finding: &Finding| finding.kind == SensitiveKind::Iban;
        assert!(!find(&whole[..end]).iter().any(is_account), "{}", &whole[..end]);
    }
    assert_eq!(find("Q%4111 1111 1111 1111").len(), 1);
}

#[test]
fn what_stands_beside_a_secret_hides_nothing() {
    let secrets = [
        ("github_token", made("ghp_", 36)),
        ("openai_key", made("sk-", 48)),
        ("aws_key", made_of("AKIA", "QZ7XK2M4WBTR3NCH", 16)),
        ("jwt", format!("{}.{}.{}", made("eyJ", 20), made("eyJ", 40), made("", 43))),
        ("payment_card", "4111111111111111".to_owned()),
        ("payment_card", "4111 1111 1111 1111".to_owned()),
        ("iban", "DE89370400440532013000".to_owned()),
        ("email", "ann@example.com".to_owned()),
    ];
    #[rustfmt::skip]
    let signs = [
        "“", "„", "’", "»", "—", "•", "→", "\u{a0}", "邮箱", "：", "ä", "é", "🔑", "\u{200b}", "\u{200e}",
        "\u{85}", "\0", "\u{7}",
    ];
    for (kind, value) in &secrets {
        for sign in signs {
            let text = format!("a {sign}{value}{sign} b");
            assert_eq!(kinds(&text), [(*kind, value.as_str())], "{text}");
        }
        for prefix in ["\u{1b}[31m", "\u{1b}[1;38;5;208m", "\u{1b}(B", "[0m", "\\n", "\\u001b[31m"]
        {
            let text = format!("a {prefix}{value}\u{1b}[0m b");
            assert_eq!(kinds(&text), [(*kind, value.as_str())], "{text}");
        }
        let encoded = ["%20", "%0A", "%E2%80%9C", "\\u201c", "\\u90ae", "&#8220;", "&nbsp;"];
        for prefix in encoded {
            let text = format!("a {prefix}{value} b");
            let redacted = redact(&text, Handling::REDACT).0.into_owned();
            assert!(redacted.contains(&format!("[redacted:{kind}] b")), "{text}: {redacted}");
        }
        for prefix in ["-", ".", "x-", "_", "%20-"] {
            if *kind != "email" {
                let text = format!("a {prefix}{value} b");
                assert_eq!(kinds(&text), [(*kind, value.as_str())], "{text}");
            }
        }
    }
    assert_eq!(kinds("“+44 20 7946 0958”"), [("phone", "+44 20 7946 0958")]);
    assert_eq!(kinds("（078-05-1120）"), [("national_id", "078-05-1120")]);
}

proptest::proptest! {
    #[test]
    fn nothing_redacted_is_found_again(
        parts in proptest::collection::vec(
            proptest::prop_oneof![
                "\\PC{0,12}",
                "[ -~\n]{0,20}",
                "[0-9 .+()-]{0,24}",
                "(DE|GB|NO|[A-Z]{2})[0-9]{2}( [A-Z0-9]{4}){0,7}",
                "[%&#;xu\\\\0-9A-Fa-f ]{0,16}",
                proptest::strategy::Just("jane@example.com".to_owned()),
                proptest::strategy::Just("4111 1111 1111 1111".to_owned()),
                proptest::strategy::Just(made("ghp_", 36)),
                proptest::strategy::Just("api_key=\"".to_owned()),
                proptest::strategy::Just("Authorization: Bearer ".to_owned()),
                proptest::strategy::Just("postgres://a:".to_owned()),
                proptest::strategy::Just("-----BEGIN PRIVATE KEY-----".to_owned()),
                proptest::strategy::Just("DE89370400440532013000".to_owned()),
            ],
            0..8,
        )
    ) {
        let text = parts.concat();
        let found = find(&text);
        for pair in found.windows(2) {
            proptest::prop_assert!(pair[0].bytes.end <= pair[1].bytes.start);
        }
        let (redacted, _) = redact(&text, Handling::REDACT);
        proptest::prop_assert_eq!(find(&redacted), vec![]);
        for finding in found {
            proptest::prop_assert!(text.get(finding.bytes).is_some());
        }
    }
}
