//! Castings, histories, interpretations, chats and the model calls behind them.

mod help;
mod hexagrams;
mod hostile_models;
mod live_interpretations;
mod model_calls;
mod model_responses;
mod model_screening;
mod model_usage;
mod prompts;
mod revoked_streams;
mod scripts;
mod v0_divination;
mod v0_divination_history;
mod v0_divination_records;
mod v0_llm;
mod v1_charts;
mod v1_hexagrams;
mod v1_interpretations;
mod v1_plum_blossom;
mod v1_session_cards;
mod v1_session_interpretation;
mod v1_sessions;
