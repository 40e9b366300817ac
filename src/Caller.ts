/**
 * Callers: who starts runs and answers their questions, and for whom.
 *
 * A run keeps the caller who started it, and the runs below it have the same one. Policies, hooks, middleware, filters
 * of memories and shared budgets decide by it, and stores find runs by its tenant and labels.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import type { JsonObject } from "./kit/json.ts"

/**
 * A person or program that starts runs and answers their questions.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Caller = /* @__PURE__ */ (() => {
  const text = (most: number) => Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(most))
  const name = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}$/))
  return Schema.Struct({
    /** A user id, or the name of a program: 1 to 256 characters. */
    id: text(256),
    /**
     * The name of the person at the caller, 1 to 64 characters: what a person says, which nobody checks. It stands beside
     * the id wherever a decision is stored, and decides nothing.
     */
    name: Schema.optionalKey(text(64)),
    /**
     * The customer that the caller belongs to, 1 to 128 characters. Absent for callers of the host itself. A caller with
     * a tenant answers no question of another tenant.
     */
    tenant: Schema.optionalKey(text(128)),
    /** At most 64 roles by which policies decide. An operator of the HTTP door has the role `operator`. */
    roles: Schema.optionalKey(Schema.Array(text(128)).check(Schema.isMaxLength(64))),
    /**
     * At most 32 texts by name, by which runs are found. A name begins with a letter or digit and has 1 to 64 letters,
     * digits, `.`, `_`, `/` or `-`; a text has at most 256 characters.
     */
    labels: Schema.optionalKey(
      Schema.Record(Schema.String, Schema.String.check(Schema.isMaxLength(256))).check(
        Schema.isMaxProperties(32),
        Schema.isPropertyNames(name)
      )
    )
  })
})()

/**
 * A person or program that starts runs and answers their questions.
 *
 * @category models
 * @since 0.1.0
 */
export interface Caller extends Schema.Schema.Type<typeof Caller> {}

/**
 * Returns how a caller signs a decision: its id, after the name of the person if there is one.
 *
 * @category getters
 * @since 0.1.0
 */
export const signatureOf = ({ id, name }: Caller): string => (name === undefined ? id : `${name} (${id})`)

/**
 * Decides who may answer a question: a caller who is listed or has one of the roles; without both lists, everyone.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Answerers = /* @__PURE__ */ (() =>
  Schema.Struct({
    /** The ids of callers who may answer. */
    callers: Schema.optionalKey(Schema.Array(Schema.String)),
    /** Callers with one of these roles may answer. */
    roles: Schema.optionalKey(Schema.Array(Schema.String)),
    /** Whether the caller who started the run may answer, too. Default: false. */
    owner: Schema.optionalKey(Schema.Boolean)
  }))()

/**
 * Decides who may answer a question: a caller who is listed or has one of the roles; without both lists, everyone.
 * The caller who started the run may answer only if `owner` is true, and a caller of another tenant never.
 *
 * @category models
 * @since 0.1.0
 */
export interface Answerers extends Schema.Schema.Type<typeof Answerers> {}

/**
 * Returns whether a caller may answer a question of a run that `owner` started. All rules must agree.
 *
 * @category guards
 * @since 0.1.0
 */
export const mayAnswer = (
  rules: ReadonlyArray<Answerers> | undefined,
  caller: Caller | undefined,
  owner: Caller | undefined
): boolean =>
  rules === undefined ||
  (caller !== undefined && !isForeign(caller, owner) && rules.every((rule) => admits(rule, caller, owner)))

/** Returns whether a caller belongs to a tenant, and the run to another one or to none. */
const isForeign = ({ tenant }: Caller, owner: Caller | undefined): boolean =>
  tenant !== undefined && tenant !== owner?.tenant

const admits = (rule: Answerers, caller: Caller, owner: Caller | undefined): boolean =>
  caller.id === owner?.id
    ? rule.owner === true
    : (rule.callers === undefined && rule.roles === undefined) || isNamedBy(rule, caller)

const isNamedBy = ({ callers = [], roles = [] }: Answerers, caller: Caller): boolean =>
  callers.includes(caller.id) || (caller.roles?.some((role) => roles.includes(role)) ?? false)

/**
 * The run, the agent and the caller that something is decided for. `Agent.contextOf` decodes the context.
 *
 * @category models
 * @since 0.1.0
 */
export interface Scope {
  readonly runId: string
  readonly rootRunId: string
  /** The name of the agent at work. */
  readonly agent: string
  /** Levels of runs above this one; the root run has depth 0. */
  readonly depth: number
  /** The context of the run, as it is stored. */
  readonly context: JsonObject
  /** The caller who started the tree of the run, if it was given. */
  readonly caller?: Caller
}

// ---------------------------------------------------------------- tenants and labels

/**
 * Selects runs by the caller who started them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Selection {
  /** Only runs of this tenant. */
  readonly tenant?: string | undefined
  /** Only runs with all of these labels. */
  readonly labels?: { readonly [name: string]: string } | undefined
}

/**
 * Returns whether a caller has the tenant and all labels of a selection.
 *
 * @category guards
 * @since 0.1.0
 */
export const isSelected = (caller: Caller | undefined, { labels, tenant }: Selection): boolean =>
  (tenant === undefined || caller?.tenant === tenant) &&
  Object.entries(labels ?? {}).every(([name, text]) => caller?.labels?.[name] === text)

/**
 * Parses labels of the form `name=text`. Undefined if one of them has no valid name, or a name occurs twice.
 *
 * @category getters
 * @since 0.1.0
 */
export const labelsIn = (texts: ReadonlyArray<string>): { readonly [name: string]: string } | undefined => {
  const labels = new Map<string, string>()
  for (const text of texts) {
    const [, name, value] = /^([A-Za-z0-9][A-Za-z0-9._/-]{0,63})=(.*)$/s.exec(text) ?? []
    if (name === undefined || value === undefined || labels.has(name)) return undefined
    labels.set(name, value)
  }
  return Object.fromEntries(labels)
}
