//! QR codes as SVG.

use std::fmt::Write as _;

use maud::{Markup, html};
use qrcode::{Color, EcLevel, QrCode};

/// Renders a QR code, or nothing if the text is too long for one.
pub fn code(text: &str, label: &str) -> Markup {
    let Ok(code) = QrCode::with_error_correction_level(text, EcLevel::M) else { return html! {} };
    let width = code.width();
    let mut path = String::new();
    for (index, _) in code.to_colors().iter().enumerate().filter(|(_, color)| **color == Color::Dark) {
        let _ = write!(path, "M{} {}h1v1h-1z", index % width + 4, index / width + 4);
    }
    let side = width + 8;
    html! {
        svg.qr viewBox={ "0 0 " (side) " " (side) } role="img" aria-label=(label) shape-rendering="crispEdges" {
            rect width=(side) height=(side) fill="#fff" {}
            path d=(path) fill="#000" {}
        }
    }
}
