//! The model's words in OpenAPI: which values each takes. The fields themselves carry the model's own enums.

use jobyard_model::{EndedBy, Intent, JobKind, Outcome, Phase, Role, Status};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! word {
    ($(#[$doc:meta])* $word:ident, $name:literal, $values:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $word;

        impl PartialSchema for $word {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some($values)).into()
            }
        }

        impl ToSchema for $word {
            fn name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
        }
    };
}

word!(
    /// [`Status`].
    StatusWord, "Status", Status::ALL.map(Status::as_str)
);
word!(
    /// [`Phase`].
    PhaseWord, "Phase", Phase::ALL.map(Phase::as_str)
);
word!(
    /// [`Outcome`].
    OutcomeWord, "Outcome", Outcome::ALL.map(Outcome::as_str)
);
word!(
    /// [`Intent`].
    IntentWord, "Intent", Intent::ALL.map(Intent::as_str)
);
word!(
    /// [`EndedBy`].
    EndedByWord, "EndedBy", EndedBy::ALL.map(EndedBy::as_str)
);
word!(
    /// [`Role`].
    RoleWord, "Role", Role::ALL.map(Role::as_str)
);
word!(
    /// [`JobKind`].
    JobKindWord, "JobKind", [JobKind::Task.as_str(), JobKind::Service.as_str()]
);
word!(
    /// [`jobyard_model::IoClass`].
    IoClassWord, "IoClass", ["cpu", "io", "mixed"]
);
word!(
    /// [`jobyard_model::Runtime`].
    RuntimeWord, "Runtime", ["process"]
);
word!(
    /// [`jobyard_model::node::NodeGate`].
    NodeGateWord, "NodeGate", ["open", "cordoned", "draining"]
);
