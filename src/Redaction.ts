/**
 * Keeps secrets out of what the model and the logs see (S-7).
 *
 * A run under a redactor shows the model no text with a secret in it, wherever
 * it came from: results of skills and protocols with their keys, errors, what
 * users and files said. Recorders, loggers and whoever calls a skill that is
 * served are told the same. Without one, only what looks like a key in an error
 * is taken out.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { entities } from "./internal/base/text.ts"
import { redact } from "./internal/base/redact.ts"

/**
 * Takes the secrets out of a text.
 *
 * @category models
 * @since 0.1.0
 */
export interface Redactor {
  readonly text: (text: string) => string
}

/**
 * What is to be taken out.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Secrets that are known. One of fewer than four characters is passed over: it would blot out words. */
  readonly secrets?: ReadonlyArray<Redacted.Redacted<string>> | undefined
  /** Also whatever looks like a key. Default: yes. */
  readonly shapes?: boolean | undefined
}

/**
 * The redactor of a run. None by default.
 *
 * @category references
 * @since 0.1.0
 */
export const Redaction: Context.Reference<Redactor | undefined> = Context.Reference<Redactor | undefined>(
  "kernai/Redaction",
  { defaultValue: () => undefined }
)

/**
 * Makes a redactor. Known secrets are also found as they stand in JSON, and between tags.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Redactor => {
  const known = new Set<string>()
  for (const secret of options.secrets ?? []) {
    const value = Redacted.value(secret)
    if (value.length < shortest) continue
    known.add(value)
    known.add(JSON.stringify(value).slice(1, -1))
    known.add(entities(value))
  }
  // The longer first: a secret may be part of another.
  const secrets = [...known].toSorted((a, b) => b.length - a.length)
  const shapes = options.shapes ?? true
  return {
    text: (text) => {
      let clean = text
      for (const secret of secrets) if (clean.includes(secret)) clean = clean.replaceAll(secret, "<redacted>")
      return shapes ? redact(clean) : clean
    }
  }
}

/**
 * Puts a redactor in place for every run under it.
 *
 * @example
 * const safe = Redaction.layer({ secrets: [apiKey] })
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<never> => Layer.succeed(Redaction, make(options))

const shortest = 4
