/**
 * Skills, packs, templates and settings that people keep in files, and that cannot be used as they stand.
 */

import * as Schema from "effect/Schema"

/** Code files that could not be loaded. The skills of before stay registered. */
export class SkillFilesInvalid extends Schema.TaggedError<SkillFilesInvalid>()("SkillFilesInvalid", {
  problems: Schema.Array(Schema.Struct({ file: Schema.String, reason: Schema.String }))
}) {
  override get message() {
    return this.problems.map((problem) => `${problem.file}: ${problem.reason}`).join("; ")
  }
}

/** A skill pack that breaks the format, in a strict store (AC-16). */
export class SkillPackInvalid extends Schema.TaggedError<SkillPackInvalid>()("SkillPackInvalid", {
  name: Schema.String,
  problems: Schema.Array(Schema.String)
}) {
  override get message() {
    return `skill pack '${this.name}' is invalid: ${this.problems.join("; ")}`
  }
}

/** No skill pack of this name (AC-16). */
export class SkillPackNotFound extends Schema.TaggedError<SkillPackNotFound>()("SkillPackNotFound", {
  name: Schema.String
}) {
  override get message() {
    return `no skill pack '${this.name}'`
  }
}

/** No such file in the skill pack (AC-16). */
export class SkillFileNotFound extends Schema.TaggedError<SkillFileNotFound>()("SkillFileNotFound", {
  name: Schema.String,
  path: Schema.String
}) {
  override get message() {
    return `skill pack '${this.name}' has no file '${this.path}'`
  }
}

/** A file over the limit (AC-16). */
export class FileTooLarge extends Schema.TaggedError<FileTooLarge>()("FileTooLarge", {
  path: Schema.String,
  bytes: Schema.Finite,
  limit: Schema.Finite
}) {
  override get message() {
    return `'${this.path}' holds ${this.bytes} bytes, ${this.limit} are allowed`
  }
}

/** A path that leaves the skill pack or is no plain file (AC-17). Nothing was opened. */
export class InvalidSkillPath extends Schema.TaggedError<InvalidSkillPath>()("InvalidSkillPath", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `'${this.path}' is not allowed: ${this.reason}`
  }
}

/** A prompt template that does not parse or render (AC-11). */
export class TemplateError extends Schema.TaggedError<TemplateError>()("TemplateError", {
  line: Schema.Int,
  detail: Schema.String
}) {
  override get message() {
    return `template, line ${this.line}: ${this.detail}`
  }
}

/** A configuration that cannot be used (BP-171). */
export class ConfigInvalid extends Schema.TaggedError<ConfigInvalid>()("ConfigInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return this.reason
  }
}
