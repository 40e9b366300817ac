import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Schema from "effect/Schema"
import { Invalid } from "../../http/HttpProblem.ts"

/** Decodes the query of the request with a Schema. A repeated parameter is a list. */
export const query = <A, I extends Readonly<Record<string, string | ReadonlyArray<string> | undefined>>>(
  schema: Schema.Codec<A, I>
) =>
  HttpServerRequest.HttpServerRequest.use(({ url }) =>
    Schema.decodeUnknownEffect(schema)(HttpServerRequest.searchParamsFromURL(new URL(url, "http://localhost")))
  ).pipe(Effect.mapError(({ message }) => new Invalid({ detail: message.slice(0, 1_000) })))
