/**
 * The fields of a message. The type of messages is derived from them.
 */

import * as Schema from "effect/Schema"
import * as Storable from "../../kit/storable.ts"

/**
 * The schema of roles.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Role = Schema.Literals(["system", "user", "assistant", "tool"])

export const fieldsOf = <C extends Schema.Constraint>(content: C) => ({
  role: Role,
  content,
  name: Schema.optionalKey(Schema.String),
  metadata: Schema.optionalKey(Storable.JsonObject)
})
