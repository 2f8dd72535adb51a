// The part of Moshi that generated models use. Moshi itself comes from Maven.

package com.squareup.moshi

annotation class Json(val name: String)

annotation class JsonClass(val generateAdapter: Boolean)
