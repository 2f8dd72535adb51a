// The part of OkHttp that generated operations use. OkHttp itself comes from Maven.

package okhttp3

interface Call {
    interface Factory
}

class HttpUrl(val encodedPathSegments: List<String>) {
    class Builder {
        fun scheme(scheme: String) = this
        fun host(host: String) = this
        fun addPathSegment(segment: String) = this
        fun build() = HttpUrl(listOf(""))
    }
}
