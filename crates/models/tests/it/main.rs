//! The models as their users see them; one module a model.

mod built_in;
