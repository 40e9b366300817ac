/**
 * Callers, and rules about who may answer a question, as they are stored.
 */

import * as Schema from "effect/Schema"
import { lazily, type TypeOf } from "../../kit/schemas.ts"

/**
 * A person or program that starts runs and answers their questions.
 *
 * @category models
 * @since 0.1.0
 */
export interface Caller extends TypeOf<typeof caller> {}

export const caller = lazily(() =>
  Schema.Struct({
    /** A user id, or the name of a program. */
    id: Schema.String,
    /** The roles that `Policy.confirm` may ask for. An operator of the HTTP door has the role `operator`. */
    roles: Schema.optionalKey(Schema.Array(Schema.String))
  })
)

/**
 * Decides who may answer a question: a caller who is listed or has one of the roles; without both lists, everyone.
 * The caller who started the run may answer only if `owner` is true.
 *
 * @category models
 * @since 0.1.0
 */
export interface Answerers extends TypeOf<typeof answerers> {}

export const answerers = lazily(() =>
  Schema.Struct({
    /** The ids of callers who may answer. */
    callers: Schema.optionalKey(Schema.Array(Schema.String)),
    /** Callers with one of these roles may answer. */
    roles: Schema.optionalKey(Schema.Array(Schema.String)),
    /** Whether the caller who started the run may answer, too. Default: false. */
    owner: Schema.optionalKey(Schema.Boolean)
  })
)

/** Returns whether a caller may answer a question of a run that `owner` started. All rules must agree. */
export const mayAnswer = (
  rules: ReadonlyArray<Answerers> | undefined,
  caller: Caller | undefined,
  owner: Caller | undefined
): boolean => rules === undefined || (caller !== undefined && rules.every((rule) => admits(rule, caller, owner)))

const admits = (rule: Answerers, caller: Caller, owner: Caller | undefined): boolean =>
  caller.id === owner?.id
    ? rule.owner === true
    : (rule.callers === undefined && rule.roles === undefined) || isNamedBy(rule, caller)

const isNamedBy = ({ callers = [], roles = [] }: Answerers, caller: Caller): boolean =>
  callers.includes(caller.id) || (caller.roles?.some((role) => roles.includes(role)) ?? false)
