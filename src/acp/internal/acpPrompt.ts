/** Turns the prompt of a client into the input of a run. */

import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import { entities } from "../../kit/text.ts"
import * as Media from "../../Media.ts"
import { type AcpProblem, invalidParams } from "./acpProblem.ts"
import type { Prompt, PromptBlock } from "./acpWire.ts"

type Part = string | Media.Media

/** Returns the parts of the input. Resources are marked by their address. */
export const inputOf = (blocks: (typeof Prompt.Type)["prompt"]): Effect.Effect<ReadonlyArray<Part>, AcpProblem> =>
  Effect.forEach(blocks, partOf)

const partOf = (block: typeof PromptBlock.Type): Effect.Effect<Part, AcpProblem> => {
  switch (block.type) {
    case "text":
      return Effect.succeed(block.text)
    case "image":
    case "audio":
      return mediaOf(block.data, block.mimeType)
    case "resource_link":
      return Effect.succeed(`[${block.name}](${block.uri})`)
    case "resource": {
      const { resource } = block
      return "text" in resource
        ? Effect.succeed(`<resource uri="${entities(resource.uri)}">\n${resource.text}\n</resource>`)
        : mediaOf(resource.blob, resource.mimeType ?? Media.mimeTypeOf(resource.uri))
    }
  }
}

const mediaOf = (base64: string, mimeType: string): Effect.Effect<Media.Media, AcpProblem> =>
  Result.match(Base64.decode(base64), {
    onFailure: () => Effect.fail(invalidParams("the data of a medium is no base64")),
    onSuccess: (bytes) => Effect.succeed(Media.fromBytes(bytes, mimeType))
  })
