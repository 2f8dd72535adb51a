//! Response bodies that commands print in the same shape.

pub use super::{
    admin::{
        audit::AuditRow,
        code_messages::CodeMessageList,
        data_cleanup::DataCleared,
        feedback::AdminFeedback,
        figures::{CastingCounts, FigureList},
        health::{AlertTested, InstallationHealth},
        interpretation_ratings::{RatingNoteRow, RatingRate},
        logs::LogEventList,
        network_logs::{ClientCount, LoggedRequest, LoggedRequestPage, SuspiciousClient, UnlistedCount},
        notifications::AdminNotification,
        payments::{
            AdminOrder, CallbackReceipt, CheckedBill, CheckedBills, OrderEntry, OrderInquiry, OrderRefunded,
            PaymentReport, Rehearsed, ReportSums,
        },
        products::AdminProduct,
        purchases::{AdminPurchase, AdminPurchaseDetails, BuyerHistory},
        releases::AdminRelease,
        sensitive_word_migration::ShownDisagreement,
        sensitive_words::{ShownAdvice, ShownWord, TextTested},
        user_data::{ModelAttachment, UserDataFix, UserDataIssue, UserDataSynchronised, UserDataValidation},
        users::{AdminUserList, DevicesSignedOut, NicknameCleared, PhoneMoved},
        violations::{
            ShownViolation, UserViolations,
            review::{AcquittedViolation, ReviewResult, ShownReview},
        },
        webhooks::{ReplayedWebhooks, TestedWebhook, WebhookDelivery},
    },
    interpretation_sse::RatingResponse,
    v0::{
        coin::{CoinsSynchronised, LedgerIssue},
        divination_history::HistoryRestored,
    },
};
