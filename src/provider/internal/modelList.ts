/**
 * Reads the list of models that a service offers.
 */

import * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import type { ProviderError } from "../../KernelError.ts"
import type { Model } from "../../Model.ts"
import * as ModelRegistry from "../../ModelRegistry.ts"
import * as Exchange from "./httpCall.ts"
import { list, text } from "./readFields.ts"

/** Reads the models in a list of ids, with the facts known about each. */
export const offer = (
  client: HttpClient,
  service: Exchange.Service,
  url: string,
  listKey: string,
  idKey: string
): Effect.Effect<ReadonlyArray<Model>, ProviderError> =>
  Effect.map(Exchange.document(client, service, url), (document) =>
    list(document, listKey).flatMap((item) => {
      const id = text(item, idKey)
      return id === undefined ? [] : [ModelRegistry.modelOf(service.name, id.replace(/^models\//, ""))]
    })
  )
