/**
 * Errors of skills, packs, templates and settings kept in files.
 */

import * as Schema from "effect/Schema"

/** Code files that could not be loaded. The skills loaded before stay registered. */
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
