//! The payload of a platform, whatever it is, on its way to another replica.

use botmesh_core::message::RawPayload;

use crate::memory::bounded;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    bounded(bytes, 256, 16 << 10, |_| {
        let payload = RawPayload::from_json(text);
        let written = serde_json::to_string(&payload).unwrap();
        let read: Option<RawPayload> = serde_json::from_str(&written).unwrap();
        assert_eq!(read.as_ref(), Some(&payload), "written as {written}");
        assert_eq!(RawPayload::from(payload.value().clone()), payload);
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    [
        r#"{"a":[1,2.50,"ü\n",{"b":null}],"a":true}"#,
        r#""a text""#,
        "null",
        "-0",
        "[[[[[[[[[[1]]]]]]]]]]",
        "no JSON",
    ]
    .map(|payload| payload.as_bytes().to_vec())
    .into()
}
