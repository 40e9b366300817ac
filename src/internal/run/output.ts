/**
 * The typed answer of an agent: its schema for the model, and how a reply is read by it.
 */

import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { AnyAgent } from "./run.ts"

/** Decodes an answer by the agent's output schema. Fails with a sentence that says what does not fit. */
export const readOutput = (agent: AnyAgent, text: string): Result.Result<unknown, string> =>
  agent.typed ? decoderOf(agent)(text.trim()) : Result.succeed(text)

const decoders = new WeakMap<AnyAgent, (text: string) => Result.Result<unknown, string>>()

const decoderOf = (agent: AnyAgent) => {
  let decoder = decoders.get(agent)
  if (decoder === undefined) {
    const decode = Schema.decodeUnknownResult(agent.output)
    const read = (text: string) =>
      Result.flatMap(
        // A recursive schema must not end the process when a text nests too deeply for it.
        Result.try({ try: () => decode(text), catch: () => "It cannot be read: it nests too deeply." }),
        Result.mapError((error) => error.message)
      )
    // A word or a sentence may leave its quotes out. A text that begins like JSON has to be JSON.
    decoder = (text) =>
      Result.orElse(read(text), (reason) =>
        /^["{[]/.test(text) ? Result.fail(reason) : Result.mapError(read(JSON.stringify(text)), () => reason)
      )
    decoders.set(agent, decoder)
  }
  return decoder
}

const schemas = new WeakMap<AnyAgent, string>()

/** The JSON Schema of a typed answer as text. Undefined for plain text. */
export const outputSchema = (agent: AnyAgent): string | undefined => {
  if (!agent.typed) return undefined
  let text = schemas.get(agent)
  if (text === undefined) schemas.set(agent, (text = JSON.stringify(agent.outputJsonSchema?.() ?? {})))
  return text
}
