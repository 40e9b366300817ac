/**
 * Skills as the tools of a server of ours.
 *
 * A call is decided by the policy, bounded in time and told in safe words, as
 * it would be in a run; nobody is there to confirm anything.
 */

import * as McpSchema from "effect/ai/McpSchema"
import { McpServer } from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Content from "../../Content.ts"
import { askAboutSkill } from "../../internal/policy/askAboutSkill.ts"
import { shows } from "../../internal/policy/askPolicy.ts"
import { explain } from "../../internal/loop/explain.ts"
import { inTime } from "../../internal/base/effects.ts"
import { isJsonObject, type JsonObject, jsonObject, plain } from "../../internal/base/json.ts"
import { clean } from "../../internal/skill/skillOutput.ts"
import { McpError, ToolNotFound } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import { MediaStore, type MediaStoreShape as Media } from "../../MediaStore.ts"
import * as Policy from "../../Policy.ts"
import { Redaction } from "../../Redaction.ts"
import type { AnySkill } from "../../Skill.ts"
import * as Skills from "../../Skill.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"

/** Which skills are offered. */
export type Offered = "all" | ReadonlyArray<string>

/** The tools of one server. */
export interface Tools {
  /** Registers the skills there are, and follows the registry as skills come and go. */
  readonly register: (offered: Offered) => Effect.Effect<void, never, McpServer | MediaStore | Scope.Scope>
  /** Is a tool of this name there now? What was registered once stays known to the server below. */
  readonly isThere: (name: string) => boolean
  /** Waits until no call is under way, and its answer is on its way. */
  readonly idle: Effect.Effect<void>
}

/** Makes tools of the skills in context. */
export const make: Effect.Effect<Tools, never, SkillRegistry> = Effect.gen(function* () {
  const registry = yield* SkillRegistry
  const policy = yield* Policy.current
  let offered: "all" | ReadonlySet<string> = new Set()
  let running = 0

  const isThere = (name: string) =>
    (offered === "all" || offered.has(name)) && Option.isSome(registry.find(name)) && shows(policy, name, scopeOf(""))

  const register = Effect.fnUntraced(function* (asked: Offered) {
    offered = asked === "all" ? asked : new Set(asked)
    const server = yield* McpServer
    const media = yield* MediaStore
    const known = new Map<string, AnySkill>()
    let seen: ReadonlyArray<AnySkill> | undefined

    const update = Effect.gen(function* () {
      const skills = yield* registry.all
      if (skills === seen) return
      seen = skills
      for (const skill of skills) {
        if (!isThere(skill.name) || known.get(skill.name) === skill) continue
        known.set(skill.name, skill)
        const inputSchema = decodeSchema({ ...skill.inputSchema, type: "object" })
        if (Result.isFailure(inputSchema)) {
          yield* Effect.logWarning(`the skill '${skill.name}' is not offered: its input schema is not one of a tool`)
          continue
        }
        yield* server.addTool({
          tool: toolOf(skill, inputSchema.success),
          annotations: Context.empty(),
          handle: (input) =>
            Effect.acquireUseRelease(
              Effect.sync(() => running++),
              () => Effect.provideService(call(registry, skill.name, jsonObject(plain(input))), MediaStore, media),
              () => Effect.sync(() => running--)
            )
        })
      }
      const gone = [...known.keys()].filter((name) => !isThere(name))
      for (const name of gone) known.delete(name)
      if (gone.length > 0) yield* server.notifications["notifications/tools/list_changed"]({})
    })
    yield* update
    yield* Effect.forkScoped(Effect.repeat(update, Schedule.spaced("1 second")))
  })

  const idle = Effect.sleep("50 millis").pipe(
    Effect.repeat({ until: () => running === 0 }),
    Effect.andThen(Effect.sleep("50 millis"))
  )
  return { register, isThere, idle }
})

const toolOf = (skill: AnySkill, inputSchema: McpSchema.ToolJson) =>
  new McpSchema.Tool({
    name: skill.name,
    description: skill.description,
    inputSchema,
    annotations: {
      title: skill.annotations.title,
      readOnlyHint: skill.annotations.readonly,
      destructiveHint: skill.annotations.destructive,
      idempotentHint: skill.annotations.idempotent,
      openWorldHint: skill.annotations.openWorld
    }
  })

const decodeSchema = Schema.decodeUnknownResult(McpSchema.ToolJson)

const scopeOf = (callId: string): Policy.PolicyScope => ({
  runId: callId,
  rootRunId: callId,
  agent: "mcp",
  depth: 0,
  context: {}
})

/** Calls a skill as it is registered now. */
const call = Effect.fnUntraced(function* (registry: SkillRegistry["Service"], name: string, input: JsonObject) {
  const found = registry.find(name)
  if (Option.isNone(found)) return failed(new ToolNotFound({ name }).message)
  const skill = found.value
  const limits = yield* Limits
  const callId = `mcp_${(yield* Random.nextInt) >>> 0}_${(yield* Random.nextInt) >>> 0}`
  const decision = yield* decide(skill, input, callId, limits)
  if (decision._tag === "Denied") return failed(decision.reason)
  if (decision._tag === "Confirm") return failed(`${decision.reason} (a person has to confirm this, and none is here)`)

  const redactor = yield* Redaction
  const media = yield* (yield* MediaStore).run(callId)
  const limit = skill.timeout ?? limits.skillTimeout
  const body = Effect.gen(function* () {
    const value = yield* skill.call(input, {
      ...scopeOf(callId),
      callId,
      idempotencyKey: callId,
      step: 0,
      taskId: undefined,
      runContext: null,
      dialect: "tools"
    })
    const output = clean(yield* Effect.fromResult(Skills.toOutput(value)), redactor)
    return { output, content: yield* media.admit([...output.content, ...output.media]) }
  }).pipe(Effect.provideService(MediaStore, media))
  const late = () =>
    Effect.fail(
      new McpError({
        server: "",
        reason: "timeout",
        detail: `Skill '${name}' took longer than ${Duration.toMillis(limit)} ms`
      })
    )
  // A skill that does not stop when it is told to is left behind.
  const exit = yield* Effect.exit(inTime(body, limit, late))
  if (Exit.isFailure(exit)) return failed((yield* explain({ redactor }, `Skill '${name}'`, exit.cause)).message)
  const { content, output } = exit.value
  return new McpSchema.CallToolResult({
    content: yield* Effect.forEach(content, (part) => blockOf(media, part)),
    ...(isJsonObject(output.value) ? { structuredContent: output.value } : {})
  })
}, Effect.scoped)

const decide = (skill: AnySkill, input: JsonObject, callId: string, limits: Limits): Effect.Effect<Policy.Decision> =>
  Effect.flatMap(Policy.current, (policy) =>
    policy === undefined
      ? Effect.succeed(Policy.allowed)
      : askAboutSkill(
          policy,
          {
            ...scopeOf(callId),
            callId,
            name: skill.name,
            kind: "skill",
            input: input,
            effects: skill.effects
          },
          skill,
          limits
        )
  )

const failed = (text: string) => new McpSchema.CallToolResult({ isError: true, content: [{ type: "text", text }] })

const blockOf = Effect.fnUntraced(function* (media: Media, part: Content.Content) {
  if (!Content.isMedia(part)) return textBlock(Content.toText(part))
  const bytes = yield* Effect.option(media.bytes(part.fileId ?? ""))
  if (Option.isNone(bytes)) return textBlock(Content.placeholder(part))
  const mimeType = part.mediaType ?? "application/octet-stream"
  if (part.type === "image" || part.type === "audio") {
    const medium: McpSchema.ContentBlock = { type: part.type, data: bytes.value, mimeType }
    return medium
  }
  const resource: McpSchema.ContentBlock = {
    type: "resource",
    resource: { uri: `media:${part.fileId ?? ""}`, mimeType, blob: bytes.value }
  }
  return resource
})

const textBlock = (text: string): McpSchema.ContentBlock => ({ type: "text", text })
