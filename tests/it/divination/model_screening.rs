//! Screening of model output: sentence by sentence, independent of chunk boundaries.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{
    Caller, Server, eventually,
    fake_provider::{FakeProvider, Reply},
    model_requests::{
        LISTED, PHONE, ask, chat, chunks, provider_streaming, read_stream_until, streamed, with_model_provider,
    },
    soon,
};

/// A server with screening and a scripted model.
struct Screening {
    server: Server,
    user: Caller,
    body: Arc<Mutex<String>>,
    _vendor: FakeProvider,
}

impl Screening {
    fn start() -> Self {
        let body = Arc::new(Mutex::new(String::new()));
        let reported = Arc::clone(&body);
        let provider = FakeProvider::with_handler(move |_| Reply::event_stream(reported.lock().unwrap().as_str()));
        let server = with_model_provider(&provider).with("MODERATION_SCREEN_ANSWERS", true).start();
        let user = server.sign_in(PHONE);
        Self { server, user, body, _vendor: provider }
    }

    /// Returns the interpretation of a response in chunks of this size, or `None` if it is withheld.
    fn interpret_in_chunks(&self, size: usize, response: &str) -> Option<String> {
        let characters: Vec<char> = response.chars().collect();
        let pieces: Vec<String> = characters.chunks(size).map(|piece| piece.iter().collect()).collect();
        *self.body.lock().unwrap() = chunks(&pieces.iter().map(String::as_str).collect::<Vec<_>>());
        let response = ask(&self.server, &self.user).send();
        match response.status {
            200 => Some(response.json()["result"].as_str().unwrap().to_owned()),
            422 => None,
            status => panic!("{status}: {}", response.text()),
        }
    }
}

#[test]
fn finds_an_allowed_phrase_across_chunks() {
    // Just far enough from the second sentence that the remembered tail of the first could begin here.
    let remembered = format!("反洗钱{}。大吉。", "卦".repeat(61));
    let unfinished = "宜守。网上加微信支付即可。".to_owned();
    let endless = format!("{}加微信支付即可。", "卦".repeat(197));
    let named = "官网是 example.com.au 请放心。".to_owned();
    let named_late = format!("{}example.com.au。", "卦".repeat(188));
    let screening = Screening::start();
    // In this order, so that the phrase is active once the word is.
    screening.server.command(&["words", "allow", "example.com.au"]).expect(0);
    screening.server.command(&["words", "add", "example.com", "--type", "ads"]).expect(0);
    eventually("the words are active", || screening.interpret_in_chunks(1_000, "看 example.com 吧").is_none());
    for response in [remembered, unfinished, endless, named, named_late] {
        for size in [1, 2, 3, 7, 8, 100, 1_000] {
            assert_eq!(
                screening.interpret_in_chunks(size, &response).as_deref(),
                Some(response.as_str()),
                "{size}: {response}"
            );
        }
    }
}

#[test]
fn finds_listed_words_at_any_chunk_boundary() {
    let within = format!("{}。劝他去{LISTED}吧。", "卦".repeat(70));
    let across = "宜守。加。微。信。".to_owned();
    let late = format!("{}赌博{}", "卦".repeat(199), "卦".repeat(300));
    let at_the_end = format!("大吉。{LISTED}");
    let screening = Screening::start();
    for response in [within, across, late, at_the_end] {
        for size in [1, 2, 3, 7, 100, 1_000] {
            assert_eq!(screening.interpret_in_chunks(size, &response), None, "{size}: {response}");
        }
    }
}

#[test]
fn masks_stored_text_of_a_withheld_response_beyond_the_judged_part() {
    let response = format!("{}赌博{}加微信{}", "卦".repeat(100), "卦".repeat(45), "卦".repeat(100));
    let screening = Screening::start();
    assert_eq!(screening.interpret_in_chunks(1_000, &response), None);
    let stored: String = screening.server.value("select words || masked_text from violations");
    assert!(stored.starts_with(r#"["赌博"]"#) && !stored.contains("微信") && stored.contains("***"), "{stored}");
}

#[test]
fn a_screened_stream_ends_at_a_disconnect_during_reasoning() {
    let thought = json!({ "model": "m", "choices": [{ "index": 0, "delta": { "reasoning_content": "想" } }] });
    let thinking = format!("data: {thought}\n\n");
    let provider = FakeProvider::with_handler(move |_| {
        let length = thinking.len();
        Reply::event_stream(thinking.as_str()).endless().in_chunks([length]).with_pauses(Duration::from_millis(20))
    });
    let server = with_model_provider(&provider).with("MODERATION_SCREEN_ANSWERS", true).start();
    let user = server.sign_in(PHONE);
    let listener =
        read_stream_until(&server, &user, ("/divination/enhanced", &json!({ "question": "问" })), "event: meta");
    // The stream begins before the model is called.
    eventually("the model is called", || provider.requests().len() == 1);
    drop(listener);
    let has_ended = || server.value::<String>("select status from interpretations") != "running";
    soon("the call ends", Duration::from_secs(10), has_ended);
    assert_eq!(server.value::<String>("select status from interpretations"), "cancelled");
    provider.expect_client_disconnect();
}

#[test]
fn withholds_a_response_with_listed_words() {
    let provider = provider_streaming("劝你去赌博。");
    let server = with_model_provider(&provider).with("MODERATION_SCREEN_ANSWERS", true).start();
    let user = server.sign_in(PHONE);
    for request in [ask(&server, &user), chat(&server, &user)] {
        let withheld = request.send().expect_problem(422, "content_rejected");
        assert!(!withheld.text().contains(LISTED));
    }
    let text = streamed(ask(&server, &user)).send().expect(200).text();
    assert!(text.contains("event: error") && !text.contains("event: delta"), "{text}");
    assert_eq!(
        server.value::<i64>(
            "select count(*) from interpretations where error_class = 'answer withheld' and result is null"
        ),
        2
    );
    assert_eq!(server.value::<String>("select error_class from chats"), "answer withheld");
    assert_eq!(server.value::<i64>("select count(*) from violations where content_type = 'answer'"), 3);
    // Model output causes no violation of the user.
    let key = server.api_key("moderator");
    let frequent = server.get("/admin/violations/frequent-violators").token(&key).query(&[("threshold", "1")]);
    assert_eq!(frequent.send().expect(200).json()["total"], 0);
}

#[test]
fn screened_streams_send_whole_sentences_and_stop_before_a_listed_word() {
    let provider = FakeProvider::with_handler(|_| {
        Reply::event_stream(chunks(&["屯卦", "难。", "宜", "守。不", "如去赌", "博一把。", "完"]))
    });
    let server = with_model_provider(&provider).with("MODERATION_SCREEN_ANSWERS", true).start();
    let user = server.sign_in(PHONE);
    let text = streamed(ask(&server, &user)).send().expect(200).text();
    let reported: String = text
        .split("event: delta\ndata: ")
        .skip(1)
        .map(|event| {
            let data: Value = serde_json::from_str(event.lines().next().unwrap()).unwrap();
            data["text"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(reported, "屯卦难。宜守。");
    assert!(text.contains("content_rejected") && text.contains("event: error"), "{text}");
    let conversation = json!({ "messages": [{ "role": "user", "content": "你好" }], "stream": true });
    let text = server.post("/llm/chat").by(&user).json(&conversation).send().expect(200).text();
    assert!(text.contains("难。") && text.contains("宜") && !text.contains("[DONE]"), "{text}");
    assert!(!text.contains("不") && !text.contains("赌"), "{text}");
}

#[test]
fn screens_reasoning_that_is_passed_on() {
    let message = |content: &str, reasoning: &str| {
        json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "finish_reason": "stop",
            "message": { "role": "assistant", "content": content, "reasoning_content": reasoning } }] })
    };
    let thinking =
        |thought: &str| json!({ "model": "m", "choices": [{ "index": 0, "delta": { "reasoning_content": thought } }] });
    let stream: Vec<_> =
        ["先看本卦。", "劝他去赌", "博。"].iter().map(|text| format!("data: {}\n\n", thinking(text))).collect();
    let stream = stream.concat() + &chunks(&["大吉。"]);
    let provider = FakeProvider::with_handler(move |request| {
        if request.json()["stream"] == true {
            Reply::event_stream(stream.clone())
        } else {
            Reply::json(message("大吉。", "劝他去赌博。").to_string())
        }
    });
    let server = with_model_provider(&provider).with("MODERATION_SCREEN_ANSWERS", true).start();
    let user = server.sign_in(PHONE);
    let withheld = chat(&server, &user).send().expect_problem(422, "content_rejected");
    assert!(!withheld.text().contains(LISTED));
    let conversation = json!({ "messages": [{ "role": "user", "content": "你好" }], "stream": true });
    let text = server.post("/llm/chat").by(&user).json(&conversation).send().expect(200).text();
    assert!(text.contains("先看本卦") && !text.contains("赌") && !text.contains("大吉"), "{text}");
    // Interpretations contain no reasoning, so it is not screened.
    assert_eq!(ask(&server, &user).send().expect(200).json()["result"], "大吉。");
}

#[test]
fn removes_unscreened_fields_of_a_document() {
    let whole = json!({ "id": "c", "object": "chat.completion", "model": "m", "notice": LISTED, "choices": [
        { "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "大吉。", "refusal": LISTED } },
        { "index": 1, "finish_reason": "stop", "message": { "role": "assistant", "content": LISTED } },
    ] });
    let chunk = json!({ "model": "m", "choices": [
        { "index": 0, "finish_reason": null, "delta": { "content": "大吉。", "annotations": [LISTED] } },
        { "index": 1, "finish_reason": null, "delta": { "content": LISTED } },
    ] });
    let stream = format!("data: {chunk}\n\n{}", chunks(&["守。"]));
    let provider = FakeProvider::with_handler(move |request| {
        let wants_stream = request.json()["stream"] == true;
        if wants_stream { Reply::event_stream(stream.clone()) } else { Reply::json(whole.to_string()) }
    });
    let server = with_model_provider(&provider).with("MODERATION_SCREEN_ANSWERS", true).start();
    let user = server.sign_in(PHONE);
    let response = chat(&server, &user).send().expect(200);
    assert_eq!(response.json()["choices"].as_array().map(Vec::len), Some(1));
    assert_eq!(response.json()["choices"][0]["message"], json!({ "role": "assistant", "content": "大吉。" }));
    assert!(!response.text().contains(LISTED), "{}", response.text());
    let conversation = json!({ "messages": [{ "role": "user", "content": "你好" }], "stream": true });
    let text = server.post("/llm/chat").by(&user).json(&conversation).send().expect(200).text();
    assert!(text.contains("大吉。") && text.contains("守。") && text.contains("[DONE]"), "{text}");
    assert!(!text.contains(LISTED), "{text}");
}

#[test]
fn passes_on_an_innocent_response_whole() {
    let provider = FakeProvider::with_handler(|_| Reply::event_stream(chunks(&["屯卦", "难。宜守", "，不急"])));
    let server = with_model_provider(&provider).with("MODERATION_SCREEN_ANSWERS", true).start();
    let user = server.sign_in(PHONE);
    let text = streamed(ask(&server, &user)).send().expect(200).text();
    assert!(text.contains("屯卦难。宜守，不急") && text.contains("event: done"), "{text}");
    assert_eq!(ask(&server, &user).send().expect(200).json()["result"], "屯卦难。宜守，不急");
}

#[test]
fn a_masked_word_is_replaced_in_responses_streams_and_records() {
    let thinking = json!({ "model": "m", "choices": [{ "index": 0, "delta": { "reasoning_content": "想赌博。" } }] });
    let stream = format!("data: {thinking}\n\n") + &chunks(&["屯卦a", "难。不如去赌", "博，", "赌", "博。完"]);
    let whole = json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": "去赌博。赌博", "reasoning_content": "想赌博。" } }] });
    let provider = FakeProvider::with_handler(move |request| {
        let wants_stream = request.json()["stream"] == true;
        if wants_stream { Reply::event_stream(stream.clone()) } else { Reply::json(whole.to_string()) }
    });
    let server = with_model_provider(&provider)
        .with("MODERATION_SCREEN_ANSWERS", true)
        .with("MODERATION_MATCH_RULES", "gambling any answer: mask")
        .start();
    let user = server.sign_in(PHONE);
    let text = streamed(ask(&server, &user)).send().expect(200).text();
    assert!(text.contains("event: done") && text.contains("＊") && !text.contains('赌'), "{text}");
    let masked = "屯卦a难。不如去＊＊，＊＊。完";
    assert_eq!(ask(&server, &user).send().expect(200).json()["result"], masked);
    let stored = "select count(*) from interpretations where result = '屯卦a难。不如去＊＊，＊＊。完'";
    assert_eq!(server.value::<i64>(stored), 2);
    let message = chat(&server, &user).send().expect(200).json()["choices"][0]["message"].clone();
    assert_eq!((&message["content"], &message["reasoning_content"]), (&json!("去＊＊。＊＊"), &json!("想＊＊。")));
    let conversation = json!({ "messages": [{ "role": "user", "content": "你好" }], "stream": true });
    let text = server.post("/llm/chat").by(&user).json(&conversation).send().expect(200).text();
    assert!(text.contains("[DONE]") && text.contains("＊") && !text.contains('赌') && !text.contains('博'), "{text}");
    assert_eq!(server.value::<i64>("select count(*) from violations"), 0);
    // Questions are still blocked.
    let question = json!({ "question": "去赌博好吗", "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } });
    server.post("/divination/enhanced").by(&user).json(&question).send().expect_problem(422, "content_rejected");
}

#[test]
fn a_word_is_masked_at_any_chunk_boundary() {
    let body = Arc::new(Mutex::new(String::new()));
    let reported = Arc::clone(&body);
    let provider = FakeProvider::with_handler(move |_| Reply::event_stream(reported.lock().unwrap().as_str()));
    let server = with_model_provider(&provider)
        .with("MODERATION_SCREEN_ANSWERS", true)
        .with("MODERATION_MATCH_RULES", "any any answer: mask")
        .start();
    let screening = Screening { user: server.sign_in(PHONE), server, body, _vendor: provider };
    let cut = format!("{}赌博{}", "卦".repeat(135), "卦".repeat(300));
    for response in [format!("{}。劝他去{LISTED}吧。a{LISTED}", "卦".repeat(70)), cut] {
        for size in [1, 2, 3, 7, 100, 1_000] {
            let masked = response.replace(LISTED, "＊＊");
            assert_eq!(screening.interpret_in_chunks(size, &response), Some(masked), "{size}: {response}");
        }
    }
    // The part of a word that was sent before the rest is known stays.
    assert_eq!(screening.interpret_in_chunks(1, "宜守。加。微。信。").as_deref(), Some("宜守。加。微。＊。"));
}
