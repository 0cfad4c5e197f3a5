//! The record that the operator keeps on a Service it changes.

use isp_api::preserve::Original;

use super::Wanted;
use crate::ownership::{Owner, foreign, undeclared_owner};
use crate::plan::checks::policy;
use crate::record::{OriginalLabel, ServiceRecord};

impl Wanted<'_, '_> {
    pub(super) fn record_is_missing(&self) -> bool {
        self.service.record.as_ref().is_none_or(|record| record.object != self.object.name || record.retained)
    }

    /// The current record, or a new one. The counts apply to one generation: a change of the spec
    /// resets them.
    pub(super) fn record(&self) -> ServiceRecord {
        let (object, service) = (self.object, self.service);
        let known = service.record.clone().unwrap_or_else(|| self.first_record());
        let same = known.object == object.name && known.generation == object.generation;
        let counts = (known.labelled, known.localised, known.taken_over);
        let (labelled, localised, taken_over) = if same { counts } else { (0, 0, 0) };
        ServiceRecord {
            object: object.name.to_owned(),
            generation: object.generation,
            labelled,
            localised,
            taken_over,
            retained: false,
            ..known
        }
    }

    /// Taken from the status if known there, otherwise from the Service as it is.
    fn first_record(&self) -> ServiceRecord {
        let (object, service) = (self.object, self.service);
        let told = self.status.original.clone().filter(|_| service.owners.iter().any(Owner::is_us));
        let original = told.unwrap_or_else(|| Original {
            external_traffic_policy: policy(service),
            health_check_node_port: service.health_check_node_port,
        });
        let key = &object.label.key;
        let before = service.labels.get(key).filter(|value| **value != object.label.value);
        let label = before.and_then(|value| {
            let owner = foreign(&service.owners).find(|owner| owner.labels.contains(key))?;
            Some(OriginalLabel { key: key.clone(), value: value.clone(), owner: Some(owner.manager.clone()) })
        });
        ServiceRecord {
            object: object.name.to_owned(),
            policy: original.external_traffic_policy,
            policy_owner: undeclared_owner(&service.owners),
            health_check_node_port: original.health_check_node_port,
            label,
            generation: object.generation,
            labelled: 0,
            localised: 0,
            taken_over: 0,
            // Without a record, the label tells.
            skipped: service.owns_proxy_name(),
            opened: false,
            fell_back: false,
            retained: false,
        }
    }
}
