/**
 * Skills and protocols that cannot be registered or called, or whose result cannot be told.
 *
 * What a model can mend reaches it as the text of an error block; registering
 * fails for the host.
 */

import * as Schema from "effect/Schema"

/** A callable's name is taken (AC-12). Nothing was registered. */
export class ToolNameConflict extends Schema.TaggedError<ToolNameConflict>()("ToolNameConflict", {
  name: Schema.String,
  existing: Schema.String,
  incoming: Schema.String
}) {
  override get message() {
    return `'${this.name}' (${this.incoming}) is already registered (${this.existing})`
  }
}

/** No callable of this name (AC-14). The model is told so in the result of its call, and the run goes on. */
export class ToolNotFound extends Schema.TaggedError<ToolNotFound>()("ToolNotFound", { name: Schema.String }) {
  override get message() {
    return `Skill '${this.name}' not found`
  }
}

/** A protocol, a skill or a content type that cannot be registered (BP-81, AC-12, CP-8). */
export class DefinitionInvalid extends Schema.TaggedError<DefinitionInvalid>()("DefinitionInvalid", {
  name: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `'${this.name}' cannot be registered: ${this.reason}`
  }
}

/** A credential a skill requires is not set (BP-92). */
export class CredentialMissing extends Schema.TaggedError<CredentialMissing>()("CredentialMissing", {
  skill: Schema.String,
  key: Schema.String,
  variable: Schema.String
}) {
  override get message() {
    return `credential '${this.key}' of skill '${this.skill}' is missing: set ${this.variable}`
  }
}

/** Arguments that do not fit a skill's input (AC-14). The text is for the model. */
export class InvalidArguments extends Schema.TaggedError<InvalidArguments>()("InvalidArguments", {
  skill: Schema.String,
  path: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return this.detail
  }
}

/** A setting a skill asked for is not declared, or its value does not fit (BP-92). */
export class SkillSettingInvalid extends Schema.TaggedError<SkillSettingInvalid>()("SkillSettingInvalid", {
  skill: Schema.String,
  key: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `setting '${this.key}' of skill '${this.skill}': ${this.reason}`
  }
}

/**
 * A skill returned something that is no JSON, text or media.
 *
 * `path` is a JSON pointer from the returned value to the innermost fault.
 */
export class SkillResultInvalid extends Schema.TaggedError<SkillResultInvalid>()("SkillResultInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    // A model that is only told of a failure would make the call again.
    return `the skill ran, but its result cannot be told: at '${this.path}', ${this.reason}`
  }
}
