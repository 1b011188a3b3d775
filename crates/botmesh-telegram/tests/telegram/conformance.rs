//! The suite that every provider passes, by polling and by webhook.

mod polling {
    use crate::fixture::TelegramFixture;

    botmesh_core::provider_conformance!(TelegramFixture::polling().await);
}

mod webhook {
    use crate::fixture::TelegramFixture;

    botmesh_core::provider_conformance!(TelegramFixture::webhook().await);
}
