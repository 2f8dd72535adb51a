// Stands for the generated class, which needs OkHttp and Moshi and is the same for every document.

package yarrow.infrastructure

import okhttp3.Call

open class ApiClient(val baseUrl: String, val client: Call.Factory) {
    companion object {
        const val BASE_URL_KEY = "base URL"
        val defaultClient: Call.Factory = object : Call.Factory {}
        var accessToken: String? = null
    }

    protected fun <Body, Reply> request(config: RequestConfig<Body>): ApiResponse<Reply?> =
        throw UnsupportedOperationException("$config")
}
