/**
 * Reads the fields of one configured server, naming the place where one does not fit.
 *
 * Variables are replaced here, in texts that are already parsed: what a
 * variable holds stays one text (S-2).
 */

import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { ConfigInvalid } from "../../KernelError.ts"
import type { Plain } from "../../internal/base/yaml.ts"

/** A mapping as it was written. */
export type Fields = ReadonlyMap<string, Plain>

/** Tells a mapping from other values. */
export const isFields = (value: Plain | undefined): value is Fields => value instanceof Map

/** A text with its variables in place. It is a secret when there were any. */
export interface Expanded {
  readonly value: string
  readonly written: string
  readonly secret: boolean
  /** What its variables hold. */
  readonly values: ReadonlyArray<string>
}

/** Replaces the variables of a text, which stands at a path of the config. */
export type Expander = (text: string, path: string) => Effect.Effect<Expanded, ConfigInvalid>

/** The names `${NAME}` asks for in a text: capitals, digits and underscores only (BP-173). */
export const variables = (text: string): ReadonlyArray<string> =>
  Array.from(text.matchAll(variable), (match) => match[1] ?? "")

/** Replaces every `${NAME}` once; what is put in is not looked at again. */
export const expand = (text: string, values: ReadonlyMap<string, string>): string =>
  text.replace(variable, (whole, name: string) => values.get(name) ?? whole)

const variable = /\$\{([A-Z0-9_]+)\}/g

/** Looks names up as they are met; one that is not set, or set to nothing, is an error (W-16). */
export const expander = Effect.fnUntraced(function* (env: { readonly [name: string]: string | undefined } | undefined) {
  const provider = yield* ConfigProvider.ConfigProvider
  const lookup = (name: string): Effect.Effect<string | undefined> =>
    env === undefined
      ? Effect.orElseSucceed(
          Effect.map(provider.load([name]), (node) => node?.value),
          () => undefined
        )
      : Effect.succeed(Object.hasOwn(env, name) ? env[name] : undefined)
  const expander: Expander = Effect.fnUntraced(function* (text, path) {
    const names = variables(text)
    if (names.length === 0) return { value: text, written: text, secret: false, values: [] }
    const values = new Map<string, string>()
    for (const name of names) {
      const value = yield* lookup(name)
      if (value === undefined || value === "") {
        return yield* new ConfigInvalid({ path, reason: `'${path}' asks for \${${name}}, but ${name} is not set` })
      }
      values.set(name, value)
    }
    return { value: expand(text, values), written: text, secret: true, values: [...values.values()] }
  })
  return expander
})

/** The fields of one server, or of one mapping inside it. */
export class Reader {
  private readonly server: string
  private readonly fields: Fields
  private readonly expander: Expander
  private readonly path: string

  constructor(server: string, fields: Fields, expander: Expander, path = `servers.${server}`) {
    this.server = server
    this.fields = fields
    this.expander = expander
    this.path = path
  }

  expand(text: string, key: string): Effect.Effect<Expanded, ConfigInvalid> {
    return this.expander(text, `${this.path}.${key}`)
  }

  /** The error of a field. */
  invalid(key: string, reason: string): ConfigInvalid {
    return new ConfigInvalid({ path: `${this.path}.${key}`, reason })
  }

  private misfit(key: string, expected: string): ConfigInvalid {
    return this.invalid(key, `'${key}' of MCP server '${this.server}' must be ${expected}`)
  }

  private get(key: string): Plain | undefined {
    return this.fields.get(key) ?? undefined
  }

  /** A scalar as text, its variables not yet replaced. */
  raw(key: string): Effect.Effect<string | undefined, ConfigInvalid> {
    const value = this.get(key)
    return value === undefined || isScalar(value)
      ? Effect.succeed(value?.toString())
      : Effect.fail(this.misfit(key, "text"))
  }

  text(key: string): Effect.Effect<Expanded | undefined, ConfigInvalid> {
    return Effect.flatMap(this.raw(key), (text) => (text === undefined ? nothing : this.expand(text, key)))
  }

  flag(key: string): Effect.Effect<boolean, ConfigInvalid> {
    const value = this.get(key) ?? false
    return typeof value === "boolean" ? Effect.succeed(value) : Effect.fail(this.misfit(key, "true or false"))
  }

  /** A duration has a unit, as in `30 seconds`: a bare number would be read as one or the other. */
  duration(key: string, fallback: Duration.Duration): Effect.Effect<Duration.Duration, ConfigInvalid> {
    const value = this.get(key)
    if (value === undefined) return Effect.succeed(fallback)
    const parsed = decodeDuration(value)
    return Option.isSome(parsed) && Duration.isPositive(parsed.value) && Duration.isFinite(parsed.value)
      ? Effect.succeed(parsed.value)
      : Effect.fail(this.misfit(key, "a duration with its unit, as in '30 seconds'"))
  }

  /** A port; 0 when there is none. */
  port(key: string): Effect.Effect<number, ConfigInvalid> {
    const value = this.get(key) ?? 0
    return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 65_535
      ? Effect.succeed(value)
      : Effect.fail(this.misfit(key, "a port"))
  }

  list(key: string): Effect.Effect<ReadonlyArray<string> | undefined, ConfigInvalid> {
    const value = this.get(key)
    if (value === undefined) return nothing
    return isList(value) && value.every(isScalar)
      ? Effect.succeed(value.map(String))
      : Effect.fail(this.misfit(key, "a list of texts"))
  }

  section(key: string): Effect.Effect<Reader, ConfigInvalid> {
    const value = this.get(key) ?? new Map<string, Plain>()
    return isFields(value)
      ? Effect.succeed(new Reader(this.server, value, this.expander, `${this.path}.${key}`))
      : Effect.fail(this.misfit(key, "a mapping"))
  }

  secrets(key: string): Effect.Effect<ReadonlyMap<string, Redacted.Redacted<string>>, ConfigInvalid> {
    return Effect.flatMap(this.section(key), (section) =>
      collect(section.fields.keys(), (name) => Effect.map(section.text(name), (text) => text?.value ?? ""))
    )
  }

  /** A mapping sets variables; a list passes on those of that name. */
  environment(): Effect.Effect<ReadonlyMap<string, Redacted.Redacted<string>>, ConfigInvalid> {
    if (!isList(this.get("env"))) return this.secrets("env")
    return Effect.flatMap(this.list("env"), (names = []) =>
      collect(names, (name) =>
        variables(`\${${name}}`).length === 1
          ? Effect.map(this.expand(`\${${name}}`, "env"), (text) => text.value)
          : Effect.fail(this.misfit("env", "a mapping, or a list of names in capitals, digits and underscores"))
      )
    )
  }
}

const nothing: Effect.Effect<undefined> = Effect.as(Effect.void, undefined)

const decodeDuration = Schema.decodeUnknownOption(Schema.DurationFromString)

const isScalar = (value: Plain): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean"

const isList = (value: Plain | undefined): value is ReadonlyArray<Plain> => Array.isArray(value)

const collect = (
  names: Iterable<string>,
  read: (name: string) => Effect.Effect<string, ConfigInvalid>
): Effect.Effect<ReadonlyMap<string, Redacted.Redacted<string>>, ConfigInvalid> =>
  Effect.map(
    Effect.forEach(names, (name) => Effect.map(read(name), (value) => [name, Redacted.make(value)] as const)),
    (entries) => new Map(entries)
  )
