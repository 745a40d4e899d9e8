//! A job as the document that is sent.
//!
//! Invariant: **it can't be printed with its secrets**: only what is sent has them.

use std::fmt;

use serde_json::{Map, Value};

/// The field whose values are hidden.
const SECRETS: &str = "secret_env";

/// See the module.
#[derive(Clone, PartialEq)]
pub(crate) struct Document(Map<String, Value>);

impl Document {
    pub(crate) fn new(fields: Map<String, Value>) -> Self {
        Self(fields)
    }

    /// Sets a field.
    pub(crate) fn insert(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets a field that is not there.
    pub(crate) fn insert_missing(&mut self, name: &str, value: impl Into<Value>) {
        self.0.entry(name).or_insert(value.into());
    }

    /// What is to be sent, secrets included.
    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// Names its secrets, and hides what they are, whatever stands in their place.
impl fmt::Debug for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_map();
        for (name, value) in &self.0 {
            match value {
                _ if name != SECRETS => fields.entry(name, value),
                Value::Object(secrets) => fields.entry(name, &secrets.keys().collect::<Vec<_>>()),
                _ => fields.entry(name, &"hidden"),
            };
        }
        fields.finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_sent_and_never_printed() {
        for secrets in [
            json!({"TOKEN": "hunter2"}),
            json!("hunter2"),
            json!(["hunter2"]),
            json!({"A": {"B": "hunter2"}}),
        ] {
            let value = json!({"command": ["x"], "env": {"PLAIN": "shown"}, "secret_env": secrets});
            let Value::Object(fields) = value.clone() else { panic!("an object") };
            let document = Document::new(fields);
            for printed in
                [format!("{document:?}"), format!("{document:#?}"), format!("{:?}", Some(&document))]
            {
                assert!(!printed.contains("hunter2"), "{printed}");
                assert!(printed.contains("shown") && printed.contains("secret_env"), "{printed}");
            }
            assert_eq!(document.into_value(), value);
        }
    }
}
