/**
 * Keeps secrets out of prompts, events and logs.
 *
 * A run with a redactor never shows the model a text that contains a known secret, wherever it came from: results of
 * skills and protocols, errors, user input, files. The same holds for recorders, loggers, and callers of served skills.
 * Without a redactor, only text that looks like a key is removed, and only from error messages.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { entities } from "./kit/text.ts"
import { remover } from "./kit/encodedSecrets.ts"
import { redact } from "./kit/redact.ts"

/**
 * Removes secrets from a text.
 *
 * @category models
 * @since 0.1.0
 */
export interface Redactor {
  readonly text: (text: string) => string
}

/**
 * The secrets that a redactor removes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Known secrets. Secrets of fewer than four characters are ignored, since they would occur in ordinary words. */
  readonly secrets?: ReadonlyArray<Redacted.Redacted<string>> | undefined
  /** Also remove everything that looks like a key. Default: true. */
  readonly shapes?: boolean | undefined
}

/**
 * The redactor of a run. Default: none.
 *
 * @category references
 * @since 0.1.0
 */
export const Redaction: Context.Reference<Redactor | undefined> = Context.Reference<Redactor | undefined>(
  "kernai/Redaction",
  { defaultValue: () => undefined }
)

/**
 * Creates a redactor. Known secrets are also found in their JSON and entity-escaped forms. Those of at least eight
 * characters are also found with changed case, and as base64, hexadecimal digits or percent encoding.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Redactor => {
  const known = (options.secrets ?? [])
    .map((secret) => Redacted.value(secret))
    .filter((secret) => secret.length >= shortest)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), entities(secret)])
  const clean = remover(known)
  const shapes = options.shapes ?? true
  return { text: (text) => (shapes ? redact(clean(text)) : clean(text)) }
}

/**
 * Provides a redactor to every run.
 *
 * @example
 * const safe = Redaction.layer({ secrets: [apiKey] })
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<never> => Layer.succeed(Redaction, make(options))

const shortest = 4
