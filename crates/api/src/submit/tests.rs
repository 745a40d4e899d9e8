//! Bad submissions as data: what is sent, where the fault is, which it is.

use serde_json::{Value, json};

use super::*;
use crate::strict::{Fault, MAX_FAULTS};

const SETTINGS: SubmitSettings =
    SubmitSettings { file_urls: FileUrls::Allowed, secret_envs: SecretEnvs::Accepted, lease_ms: 180_000 };

fn faults_of(body: &str) -> Vec<Fault> {
    parse_job(body.as_bytes(), &SETTINGS).expect_err("was accepted").listed().to_vec()
}

/// `{"command":["true"], …}` with these fields, as text so that doubles and odd numbers survive.
fn with(fields: &str) -> String {
    format!(r#"{{"command":["true"],{fields}}}"#)
}

/// Beside a fine `command`: what is sent, where the fault is, which kind it is.
const BAD_FIELDS: &[(&str, &str, &str)] = &[
    (r#""comand":["true"]"#, "/comand", "unknown_field"),
    (r#""resources":{"cpus":1}"#, "/resources/cpus", "unknown_field"),
    (r#""id":"x""#, "/id", "unknown_field"),
    (r#""command":["false"]"#, "/command", "duplicate_field"),
    (r#""name":null,"name":null"#, "/name", "duplicate_field"),
    (r#""labels":{"a":"1","a":"2"}"#, "/labels/a", "duplicate_field"),
    (r#""resources":{"cpu":1,"cpu":1}"#, "/resources/cpu", "duplicate_field"),
    (r#""env":{"A":1}"#, "/env/A", "wrong_type"),
    (r#""env":["A=1"]"#, "/env", "wrong_type"),
    (r#""max_retries":"3""#, "/max_retries", "wrong_type"),
    (r#""exclusive":1"#, "/exclusive", "wrong_type"),
    (r#""name":7"#, "/name", "wrong_type"),
    (r#""timeout":[1]"#, "/timeout", "wrong_type"),
    (r#""name":"a\nb""#, "/name", "forbidden_character"),
    (r#""name":"a\u0000b""#, "/name", "forbidden_character"),
    (r#""name":"\u001b[2J""#, "/name", "forbidden_character"),
    (r#""name":"""#, "/name", "invalid"),
    (r#""labels":{"a\nb":"1"}"#, "/labels/a\nb", "forbidden_character"),
    (r#""labels":{"a":"1\u0000"}"#, "/labels/a", "forbidden_character"),
    (r#""labels":{"a:b":"1"}"#, "/labels/a:b", "invalid"),
    (r#""labels":{"":"1"}"#, "/labels/", "invalid"),
    (r#""node_labels":{"a":"1\n"}"#, "/node_labels/a", "forbidden_character"),
    (r#""env":{"A=B":"1"}"#, "/env/A=B", "forbidden_character"),
    (r#""env":{"A\nB":"1"}"#, "/env/A\nB", "forbidden_character"),
    (r#""env":{"A\u0000":"1"}"#, "/env/A\0", "forbidden_character"),
    (r#""env":{"A":"\u0000"}"#, "/env/A", "forbidden_character"),
    (r#""env":{"":"1"}"#, "/env/", "invalid"),
    (r#""env":{"JOBYARD_ATTEMPT":"1"}"#, "/env/JOBYARD_ATTEMPT", "not_allowed"),
    (r#""env":{"JOBYARD_OTHER":"1"}"#, "/env/JOBYARD_OTHER", "not_allowed"),
    (r#""max_retries":-1"#, "/max_retries", "out_of_range"),
    (r#""max_retries":1001"#, "/max_retries", "out_of_range"),
    (r#""max_retries":1.5"#, "/max_retries", "out_of_range"),
    (r#""max_retries":9223372036854775808"#, "/max_retries", "out_of_range"),
    (r#""max_retries":1e30"#, "/max_retries", "out_of_range"),
    (r#""priority":101"#, "/priority", "out_of_range"),
    (r#""priority":-1"#, "/priority", "out_of_range"),
    (r#""timeout":0"#, "/timeout", "out_of_range"),
    (r#""timeout":-5"#, "/timeout", "out_of_range"),
    (r#""timeout":1e12"#, "/timeout", "out_of_range"),
    (r#""timeout":"1e3""#, "/timeout", "invalid"),
    (r#""timeout":"soon""#, "/timeout", "invalid"),
    (r#""backoff":0"#, "/backoff", "out_of_range"),
    (r#""backoff":61"#, "/backoff", "out_of_range"),
    (r#""start_within":0"#, "/start_within", "out_of_range"),
    (r#""resources":{"memory":"1e99"}"#, "/resources/memory", "invalid"),
    (r#""resources":{"memory":1e99}"#, "/resources/memory", "out_of_range"),
    (r#""resources":{"memory":0}"#, "/resources/memory", "out_of_range"),
    (r#""resources":{"memory":256}"#, "/resources/memory", "out_of_range"),
    (r#""resources":{"memory":-1}"#, "/resources/memory", "out_of_range"),
    (r#""resources":{"memory":1048576.5}"#, "/resources/memory", "out_of_range"),
    (r#""resources":{"cpu":0}"#, "/resources/cpu", "out_of_range"),
    (r#""resources":{"cpu":0.0001}"#, "/resources/cpu", "out_of_range"),
    (r#""resources":{"cpu":1e9}"#, "/resources/cpu", "out_of_range"),
    (r#""resources":{"gpu":1}"#, "/resources/gpu", "not_available_yet"),
    (r#""no_retry_exit_codes":[0]"#, "/no_retry_exit_codes/0", "out_of_range"),
    (r#""no_retry_exit_codes":[256]"#, "/no_retry_exit_codes/0", "out_of_range"),
    (r#""run_at":"2026-05-01T10:00:00""#, "/run_at", "invalid"),
    (r#""run_at":1777622400"#, "/run_at", "wrong_type"),
    (r#""binary_url":"file://bin/true""#, "/binary_url", "invalid"),
    (r#""binary_url":"sha256:ABC""#, "/binary_url", "invalid"),
    (r#""binary_url":"https://x/y""#, "/binary_url", "invalid"),
    (r#""binary_url":"s3://b/k""#, "/binary_url", "invalid"),
    (r#""binary_url":"s3://bucket/folder/""#, "/binary_url", "invalid"),
    (r#""kind":"service","timeout":5"#, "/timeout", "not_allowed"),
    (r#""kind":"cron""#, "/kind", "invalid"),
    (r#""secret_env":{"A":1}"#, "/secret_env/A", "wrong_type"),
    (r#""secret_env":["A=1"]"#, "/secret_env", "wrong_type"),
    (r#""secret_env":{"A=B":"1"}"#, "/secret_env/A=B", "forbidden_character"),
    (r#""secret_env":{"A":"\u0000"}"#, "/secret_env/A", "forbidden_character"),
    (r#""secret_env":{"JOBYARD_INPUT":"1"}"#, "/secret_env/JOBYARD_INPUT", "not_allowed"),
    (r#""secret_env":{"PATH":"/bin"}"#, "/secret_env/PATH", "not_allowed"),
    (r#""env":{"A":"1"},"secret_env":{"A":"1"}"#, "/secret_env/A", "not_allowed"),
    (r#""input_path":"sha256:x""#, "/input_path", "invalid"),
    (r#""input_path":"/data""#, "/input_path", "invalid"),
    (r#""input_path":7"#, "/input_path", "wrong_type"),
    (r#""input_path":"s3://bucket/../k""#, "/input_path", "invalid"),
    (r#""output_path":"s3://x""#, "/output_path", "invalid"),
    (r#""output_path":"sha256:x""#, "/output_path", "invalid"),
    (r#""runtime":"microvm""#, "/runtime", "not_available_yet"),
    (r#""runtime":"lxc""#, "/runtime", "invalid"),
    (r#""io_class":"gpu""#, "/io_class", "invalid"),
    (r#""exclusive":true,"stop_grace":61"#, "/stop_grace", "not_allowed"),
    (r#""origin":{"kind":"schedule"}"#, "/origin/id", "missing"),
    (r#""idempotency_key":"""#, "/idempotency_key", "invalid"),
];

/// The same, as whole bodies.
const BAD_BODIES: &[(&str, &str, &str)] = &[
    (r#"{"command":"echo hi"}"#, "/command", "wrong_type"),
    (r#"{"command":["echo",1]}"#, "/command/1", "wrong_type"),
    ("[]", "", "wrong_type"),
    ("null", "", "wrong_type"),
    ("{}", "/command", "missing"),
    (r#"{"command":[]}"#, "/command", "missing"),
    (r#"{"command":null}"#, "/command", "missing"),
    (r#"{"command":[""]}"#, "/command/0", "invalid"),
    (r#"{"command":["a\u0000b"]}"#, "/command/0", "forbidden_character"),
];

#[test]
fn each_bad_field_is_named_with_its_kind() {
    let wrapped = BAD_FIELDS.iter().map(|(fields, pointer, code)| (with(fields), *pointer, *code));
    let whole = BAD_BODIES.iter().map(|(body, pointer, code)| ((*body).to_owned(), *pointer, *code));
    for (body, pointer, code) in wrapped.chain(whole) {
        let faults = faults_of(&body);
        let found = faults.iter().any(|fault| fault.pointer == pointer && fault.code.as_str() == code);
        assert!(found, "{body}\nwanted {code} at {pointer}\nfound {faults:#?}");
        let elsewhere: Vec<_> = faults.iter().filter(|fault| !fault.pointer.starts_with(pointer)).collect();
        let in_origin = pointer.starts_with("/origin");
        assert!(in_origin || elsewhere.is_empty(), "{body}\nwrongly named too: {elsewhere:#?}");
        assert!(faults.iter().all(|fault| !fault.detail.is_empty()), "{body}");
    }
}

#[test]
fn a_name_has_at_most_200_characters() {
    let faults = faults_of(&with(&format!(r#""name":"{}""#, "字".repeat(201))));
    assert_eq!((faults[0].pointer.as_str(), faults[0].code), ("/name", FaultCode::TooLong));
}

#[test]
fn a_service_with_a_timeout_is_told_why_not() {
    let faults = faults_of(&with(r#""kind":"service","timeout":5"#));
    let why = faults.iter().find(|fault| fault.pointer == "/timeout").expect("named");
    assert!(why.detail.contains("no run-time limit"), "{why:?}");
}

#[test]
fn a_service_is_more_urgent_than_a_task_unless_it_says_otherwise() {
    let spec = |fields: &str| {
        let job = parse_job(with(fields).as_bytes(), &SETTINGS).expect("fine");
        let spec = job.into_spec("team");
        (spec.kind.as_str(), spec.priority.value(), spec.timeout_ms)
    };
    assert_eq!(spec(r#""kind":"service""#), ("service", 75, None));
    assert_eq!(spec(r#""kind":"service","priority":10,"max_retries":0"#), ("service", 10, None));
    assert_eq!(spec(r#""kind":"task""#), ("task", 50, None));
}

#[test]
fn all_faults_are_named_at_once() {
    let body = r#"{"command":[],"name":"a\nb","nme":1,"priority":500,"resources":{"memory":"1e99","cpu":-1},"env":{"A=":"x"}}"#;
    let pointers: Vec<_> = faults_of(body).into_iter().map(|fault| fault.pointer).collect();
    for wanted in ["/command", "/name", "/nme", "/priority", "/resources/memory", "/resources/cpu", "/env/A="]
    {
        assert!(pointers.iter().any(|pointer| pointer == wanted), "{wanted} is not in {pointers:?}");
    }
}

#[test]
fn a_misspelt_field_gets_a_suggestion() {
    let faults = faults_of(&with(r#""max_retires":3"#));
    assert!(faults[0].detail.contains("`max_retries`"), "{faults:?}");
}

#[test]
fn what_is_no_json_says_where_it_stops() {
    let nested = format!(r#"{{"command":["true"],"labels":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let cases: [(&[u8], &str); 7] = [
        (b"", "EOF"),
        (b"{\"command\":", "line 1"),
        (b"{\"name\":\"\\ud800\"}", "surrogate"),
        (b"{\"name\":\"\xff\"}", "unicode"),
        (b"{\"priority\":1e999}", "out of range"),
        (b"{} {}", "trailing"),
        (nested.as_bytes(), "recursion"),
    ];
    for (body, part) in cases {
        let faults = parse_job(body, &SETTINGS).expect_err("was accepted");
        let [fault] = faults.listed() else { panic!("{faults:?}") };
        assert_eq!(fault.code, FaultCode::Syntax);
        assert!(fault.detail.contains(part), "{} lacks {part}", fault.detail);
    }
}

#[test]
fn too_much_of_anything_is_one_fault() {
    let labels: serde_json::Map<String, Value> =
        (0..100_000).map(|n| (format!("l{n}"), json!("x"))).collect();
    let faults = faults_of(&json!({"command": ["true"], "labels": labels}).to_string());
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((faults[0].pointer.as_str(), faults[0].code), ("/labels", FaultCode::TooMany));

    let env: serde_json::Map<String, Value> =
        (0..2_000).map(|n| (format!("E{n}"), json!("x".repeat(1_000)))).collect();
    let faults = faults_of(&json!({"command": ["true"], "env": env}).to_string());
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((faults[0].pointer.as_str(), faults[0].code), ("/env", FaultCode::TooLong));
}

#[test]
fn the_longest_argument_and_env_entry_that_a_kernel_takes_are_accepted_and_one_more_byte_is_not() {
    let at = |bytes: usize| json!({"command": ["true", "x".repeat(bytes)]}).to_string();
    assert!(parse_job(at(131_071).as_bytes(), &SETTINGS).is_ok());
    assert_eq!(faults_of(&at(131_072))[0].pointer, "/command/1");
    let at = |bytes: usize| json!({"command": ["true"], "env": {"AB": "x".repeat(bytes - 3)}}).to_string();
    assert!(parse_job(at(131_071).as_bytes(), &SETTINGS).is_ok());
    assert_eq!(faults_of(&at(131_072))[0].pointer, "/env/AB");
}

#[test]
fn a_flood_of_faults_is_cut_and_counted() {
    let fields: serde_json::Map<String, Value> = (0..5_000).map(|n| (format!("bad{n}"), json!(1))).collect();
    let mut body = json!(fields);
    body["command"] = json!(["true"]);
    let faults = parse_job(body.to_string().as_bytes(), &SETTINGS).expect_err("was accepted");
    assert_eq!((faults.listed().len(), faults.left_out()), (MAX_FAULTS, 5_000 - MAX_FAULTS));
}

#[test]
fn a_pointer_escapes_and_cuts_what_people_put_into_keys() {
    assert_eq!(faults_of(&with(r#""a/b~c":1"#))[0].pointer, "/a~1b~0c");
    let long = with(&format!(r#""{}":1"#, "k".repeat(100_000)));
    assert!(faults_of(&long)[0].pointer.chars().count() <= 102);
}

#[test]
fn odd_names_that_are_only_shown_are_accepted() {
    let long = "字".repeat(200);
    for name in
        ["a/b", "(x)", "a:b", &long, "🚀", "-x", "x ", "con", "%2F", "<script>alert(1)</script>", "../.."]
    {
        let body = json!({"command": ["true"], "name": name}).to_string();
        let job = parse_job(body.as_bytes(), &SETTINGS).expect(name);
        assert_eq!(job.into_spec("team").name, name);
    }
}

#[test]
fn what_is_left_out_gets_its_default() {
    let job = parse_job(br#"{"command":["/usr/bin/env","FOO=1"]}"#, &SETTINGS).expect("is fine");
    let spec = job.into_spec("team");
    let expected =
        ("team", "env", 3, 1_000, 10_000, 50, "default", jobyard_model::Resources::DEFAULT, None::<u64>);
    let found = (
        spec.owner.as_str(),
        spec.name.as_str(),
        spec.max_retries,
        spec.backoff_ms,
        spec.stop_grace_ms,
        spec.priority.value(),
        spec.pool.as_str(),
        spec.resources,
        spec.timeout_ms,
    );
    assert_eq!(found, expected);
    let only_binary = format!(r#"{{"binary_url":"sha256:{}"}}"#, "0".repeat(64));
    assert_eq!(parse_job(only_binary.as_bytes(), &SETTINGS).expect("is fine").into_spec("t").name, "job");
}

#[test]
fn the_hash_is_of_the_meaning_not_of_the_spelling() {
    let hash = |body: &str| parse_job(body.as_bytes(), &SETTINGS).expect(body).hash();
    let one =
        hash(r#"{"command":["true"],"timeout":90,"resources":{"memory":"1MiB"},"idempotency_key":"k"}"#);
    let same = r#" {"resources":{"memory":1048576.0}, "timeout":"1m30s","name":null,"idempotency_key":"other","command":["true"]}"#;
    assert_eq!(one, hash(same));
    assert_ne!(one, hash(r#"{"command":["true"],"timeout":91,"resources":{"memory":"1MiB"}}"#));
    // A default that is spelled out is another job: defaults may change.
    assert_ne!(hash(r#"{"command":["true"]}"#), hash(r#"{"command":["true"],"priority":50}"#));
}

#[test]
fn secrets_count_as_part_of_the_job_and_are_never_printed() {
    let read = |fields: &str| parse_job(with(fields).as_bytes(), &SETTINGS).expect("is fine");
    let job = read(r#""secret_env":{"TOKEN":"hunter2"}"#);
    assert_ne!(job.canonical(), read(r#""secret_env":{"TOKEN":"hunter3"}"#).canonical());
    assert_ne!(job.canonical(), read(r#""env":{"TOKEN":"hunter2"}"#).canonical());
    let shown = format!("{job:?}");
    assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    let spec = job.into_spec("team");
    assert!(spec.has_secret_env && spec.env.is_empty());
    assert!(!read(r#""secret_env":{}"#).into_spec("team").has_secret_env);
}

#[test]
fn secrets_are_refused_where_they_can_not_be_kept() {
    let settings = SubmitSettings { secret_envs: SecretEnvs::Refused, ..SETTINGS };
    let faults = parse_job(with(r#""secret_env":{"TOKEN":"hunter2"}"#).as_bytes(), &settings);
    let faults = faults.expect_err("was accepted");
    let [fault] = faults.listed() else { panic!("{faults:?}") };
    assert_eq!((fault.pointer.as_str(), fault.code), ("/secret_env", FaultCode::NotAllowed));
    assert!(fault.detail.contains("server.secret_key_file"), "{fault:?}");
    assert!(parse_job(with(r#""secret_env":{}"#).as_bytes(), &settings).is_ok());
}

#[test]
fn secrets_and_the_rest_have_one_limit_together() {
    let half = "x".repeat(MAX_TEXT_BYTES - 20);
    let many = |field: &str, count: usize| {
        let entries: Vec<_> = (0..count).map(|number| format!(r#""{field}{number}":"{half}""#)).collect();
        format!(r#""{field}":{{{}}}"#, entries.join(","))
    };
    assert!(parse_job(with(&many("secret_env", 7)).as_bytes(), &SETTINGS).is_ok());
    let faults = faults_of(&with(&format!("{},{}", many("env", 4), many("secret_env", 5))));
    assert_eq!(faults[0].code, FaultCode::TooLong);
}

#[test]
fn file_urls_are_refused_where_the_settings_say_so() {
    let settings = SubmitSettings { file_urls: FileUrls::Refused, ..SETTINGS };
    let body = br#"{"binary_url":"file:///bin/true"}"#;
    assert!(parse_job(body, &SETTINGS).is_ok());
    let faults = parse_job(body, &settings).expect_err("was accepted");
    assert_eq!(faults.listed()[0].code, FaultCode::NotAllowed);
}

#[test]
fn an_exclusive_job_may_have_a_grace_of_a_third_of_the_lease() {
    let at = |grace: u64| with(&format!(r#""exclusive":true,"stop_grace":{grace}"#));
    assert!(parse_job(at(60).as_bytes(), &SETTINGS).is_ok());
    assert!(parse_job(at(61).as_bytes(), &SETTINGS).is_err());
    let short_lease = SubmitSettings { lease_ms: 15_000, ..SETTINGS };
    assert!(
        parse_job(with(r#""exclusive":true"#).as_bytes(), &short_lease).is_err(),
        "the default grace counts too"
    );
}

#[test]
fn one_bad_item_of_a_batch_is_named_by_index_and_field() {
    let mut jobs = vec![json!({"command": ["true"]}); 10_000];
    jobs[7_777] = json!({"command": ["true"], "priority": 1_000});
    let faults =
        parse_batch(json!({"jobs": jobs}).to_string().as_bytes(), &SETTINGS).expect_err("was accepted");
    let [fault] = faults.listed() else { panic!("{faults:?}") };
    assert_eq!(fault.pointer, "/jobs/7777/priority");
}

#[test]
fn a_batch_has_1_to_10_000_jobs_and_nothing_else() {
    let many = json!({"jobs": vec![json!({"command": ["true"]}); 10_001]}).to_string();
    for body in
        [r#"{"jobs":[]}"#, "{}", "[]", r#"{"jobs":{}}"#, r#"{"jobs":[{"command":["true"]}],"x":1}"#, &many]
    {
        assert!(parse_batch(body.as_bytes(), &SETTINGS).is_err(), "{}", &body[..body.len().min(60)]);
    }
    let whole = json!({"jobs": vec![json!({"command": ["true"]}); 10_000]}).to_string();
    assert_eq!(parse_batch(whole.as_bytes(), &SETTINGS).expect("is fine").len(), 10_000);
}

#[test]
fn what_the_typed_request_writes_is_what_the_parser_reads() {
    let job = JobSubmit {
        name: Some("nightly".to_owned()),
        command: vec!["true".to_owned()],
        timeout: Some(crate::json::Seconds { ms: 1_500 }),
        run_at: Some(crate::json::Time(jobyard_model::Timestamp(1_777_622_400_123))),
        kind: Some(jobyard_model::JobKind::Task),
        io_class: Some(jobyard_model::IoClass::Io),
        runtime: Some(jobyard_model::Runtime::Process),
        ..JobSubmit::default()
    };
    let body = serde_json::to_vec(&job).expect("plain data");
    assert_eq!(parse_job(&body, &SETTINGS).expect("is fine").submit, job);
}
