/**
 * Errors of registering, loading and calling skills and protocols.
 *
 * Errors of registration and files go to the host. Errors that a model can correct become the text of an error block.
 */

import * as Schema from "effect/Schema"

/** The name of a callable is taken. Nothing was registered. */
export class ToolNameConflict extends Schema.TaggedError<ToolNameConflict>()("ToolNameConflict", {
  name: Schema.String,
  existing: Schema.String,
  incoming: Schema.String
}) {
  override get message() {
    return `'${this.name}' (${this.incoming}) is already registered (${this.existing})`
  }
}

/** No callable has this name. The model sees this in the result of its call, and the run continues. */
export class ToolNotFound extends Schema.TaggedError<ToolNotFound>()("ToolNotFound", { name: Schema.String }) {
  override get message() {
    return `Skill '${this.name}' not found`
  }
}

/** A protocol, skill or content type that cannot be registered. */
export class DefinitionInvalid extends Schema.TaggedError<DefinitionInvalid>()("DefinitionInvalid", {
  name: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `'${this.name}' cannot be registered: ${this.reason}`
  }
}

/** A credential that a skill requires is not set. */
export class CredentialMissing extends Schema.TaggedError<CredentialMissing>()("CredentialMissing", {
  skill: Schema.String,
  key: Schema.String,
  variable: Schema.String
}) {
  override get message() {
    return `credential '${this.key}' of skill '${this.skill}' is missing: set ${this.variable}`
  }
}

/** The input of a call does not fit the skill's schema. The message is written for the model. */
export class InvalidArguments extends Schema.TaggedError<InvalidArguments>()("InvalidArguments", {
  skill: Schema.String,
  path: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return this.detail
  }
}

/**
 * A question of a call has no answer yet. The call ends, the run pauses with the question, and the answer runs the call
 * again from its beginning.
 */
export class AnswerPending extends Schema.TaggedError<AnswerPending>()("AnswerPending", {
  callId: Schema.String
}) {
  override get message() {
    return `call '${this.callId}' waits for the answer of a person`
  }
}

/**
 * A call requested a reply of a model and got none: a policy refused it, the budget is exhausted, or the model failed.
 */
export class SamplingRefused extends Schema.TaggedError<SamplingRefused>()("SamplingRefused", {
  reason: Schema.Literals(["denied", "budget", "failed"]),
  detail: Schema.String
}) {
  override get message() {
    return this.detail
  }
}

/** A skill asked for a setting it does not declare, or the value of a setting does not fit its type. */
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
 * A skill returned a value that is not JSON, text or media.
 *
 * `path` is a JSON pointer from the returned value to the innermost fault.
 */
export class SkillResultInvalid extends Schema.TaggedError<SkillResultInvalid>()("SkillResultInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    // Says that the skill ran, because a model that only sees a failure would repeat the call.
    return `the skill ran, but its result cannot be used: at '${this.path}', ${this.reason}`
  }
}

/** Code files that could not be loaded. Skills that were loaded before stay registered. */
export class SkillFilesInvalid extends Schema.TaggedError<SkillFilesInvalid>()("SkillFilesInvalid", {
  problems: Schema.Array(Schema.Struct({ file: Schema.String, reason: Schema.String }))
}) {
  override get message() {
    return this.problems.map((problem) => `${problem.file}: ${problem.reason}`).join("; ")
  }
}

/** A skill pack breaks the format. Only strict stores fail with it. */
export class SkillPackInvalid extends Schema.TaggedError<SkillPackInvalid>()("SkillPackInvalid", {
  name: Schema.String,
  problems: Schema.Array(Schema.String)
}) {
  override get message() {
    return `skill pack '${this.name}' is invalid: ${this.problems.join("; ")}`
  }
}

/** No skill pack has this name. */
export class SkillPackNotFound extends Schema.TaggedError<SkillPackNotFound>()("SkillPackNotFound", {
  name: Schema.String
}) {
  override get message() {
    return `no skill pack '${this.name}'`
  }
}

/** The skill pack has no such file. */
export class SkillFileNotFound extends Schema.TaggedError<SkillFileNotFound>()("SkillFileNotFound", {
  name: Schema.String,
  path: Schema.String
}) {
  override get message() {
    return `skill pack '${this.name}' has no file '${this.path}'`
  }
}

/** A file is larger than the limit. */
export class FileTooLarge extends Schema.TaggedError<FileTooLarge>()("FileTooLarge", {
  path: Schema.String,
  bytes: Schema.Finite,
  limit: Schema.Finite
}) {
  override get message() {
    return `'${this.path}' holds ${this.bytes} bytes, more than the ${this.limit} allowed`
  }
}

/** A path leaves the skill pack or is not a plain file. Nothing was opened. */
export class InvalidSkillPath extends Schema.TaggedError<InvalidSkillPath>()("InvalidSkillPath", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `'${this.path}' is not allowed: ${this.reason}`
  }
}

/** A prompt template does not parse or render. */
export class TemplateError extends Schema.TaggedError<TemplateError>()("TemplateError", {
  line: Schema.Int,
  detail: Schema.String
}) {
  override get message() {
    return `template, line ${this.line}: ${this.detail}`
  }
}

/** A configuration that cannot be used. `path` is the file or the place in it. */
export class ConfigInvalid extends Schema.TaggedError<ConfigInvalid>()("ConfigInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return this.reason
  }
}
