//! Reads the operator's annotations. Anyone who may edit an object can write them, so every value
//! that a later write would repeat is validated: a write that the API server rejects would be
//! retried forever and block others.

use isp_api::names::{FAILURE_ANNOTATION, HANDOVER_ANNOTATION, OPERATOR_FIELD_MANAGER, ORIGINAL_ANNOTATION};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;

use crate::record::{AffinityRecord, Failure, Handover, ServiceRecord};

/// The maximum length, in characters, of foreign text repeated in a status or annotation.
const LONGEST_TEXT: usize = 1024;
/// The API server's limit for field manager names.
const LONGEST_MANAGER: usize = 128;
/// The API server's limit for label values.
const LONGEST_VALUE: usize = 63;

fn annotation<T: DeserializeOwned>(metadata: &ObjectMeta, name: &str) -> Option<T> {
    serde_json::from_str(metadata.annotations.as_ref()?.get(name)?).ok()
}

/// The record of a Service.
pub(super) fn service_record(metadata: &ObjectMeta) -> Option<ServiceRecord> {
    let mut record: ServiceRecord = annotation(metadata, ORIGINAL_ANNOTATION)?;
    record.policy_owner = record.policy_owner.filter(|owner| is_manager(owner));
    record.label = record.label.filter(|label| is_label_value(&label.value));
    if let Some(label) = &mut record.label {
        label.owner = label.owner.take().filter(|owner| is_manager(owner));
    }
    Some(record)
}

/// The record of the cluster's kube-proxy.
pub(super) fn affinity_record(metadata: &ObjectMeta) -> Option<AffinityRecord> {
    let mut record: AffinityRecord = annotation(metadata, ORIGINAL_ANNOTATION)?;
    record.owner = record.owner.filter(|owner| is_manager(owner));
    Some(record)
}

/// The handover of a node.
pub(super) fn handover(metadata: &ObjectMeta) -> Option<Handover> {
    annotation(metadata, HANDOVER_ANNOTATION)
}

/// The failure of a node.
pub(super) fn failure(metadata: &ObjectMeta) -> Option<Failure> {
    let mut failure: Failure = annotation(metadata, FAILURE_ANNOTATION)?;
    failure.reason = shortened(failure.reason);
    Some(failure)
}

/// Whether this is a field manager that the API server accepts and that is not the operator.
fn is_manager(name: &str) -> bool {
    let printable = name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    printable && (1..=LONGEST_MANAGER).contains(&name.len()) && name != OPERATOR_FIELD_MANAGER
}

fn is_label_value(value: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    bytes.len() <= LONGEST_VALUE
        && bytes.iter().copied().all(inside)
        && end(bytes.first())
        && end(bytes.last())
}

/// Truncates text that is too long.
pub(super) fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
