/**
 * Offers skills as the tools of an MCP server. As in a run, a call needs the policy's decision, is limited in time, and
 * its errors are cleaned. A call that needs confirmation is confirmed by the person of the client, and fails if the
 * client cannot ask one.
 */

import * as McpSchema from "effect/ai/McpSchema"
import { McpServer } from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Caller from "../../Caller.ts"
import * as Content from "../../Content.ts"
import { shorten } from "../../kit/text.ts"
import { inTime } from "../../kit/foreignCode.ts"
import { isJsonObject, jsonObject, type JsonObject, plain } from "../../kit/json.ts"
import { McpError, ToolNotFound } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import { MediaStore, type MediaStoreShape as Media } from "../../MediaStore.ts"
import * as Policy from "../../Policy.ts"
import { Redaction } from "../../Redaction.ts"
import * as Skill from "../../Skill.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import { canonical } from "../../store-kit/MemoryRules.ts"
import * as CallProgress from "./callProgress.ts"
import * as ClientAsks from "./clientAsks.ts"
import * as ParkedCalls from "./parkedCalls.ts"

export interface Tools {
  /** Registers the offered skills, and follows changes of the registry. */
  readonly register: (
    offered: "all" | ReadonlyArray<string>
  ) => Effect.Effect<void, never, McpServer | MediaStore | Scope.Scope>
  /**
   * Returns true if the tool of this name is offered now, since effect's server never removes a tool. Tools of other
   * registrations always count as offered.
   */
  readonly isOffered: (name: string) => boolean
  /** Waits until no call is in progress and the last response has been written. */
  readonly idle: Effect.Effect<void>
}

/** Creates the tools. `announce` notifies clients without a session that the tools have changed. */
export const make = Effect.fnUntraced(function* (
  announce: Effect.Effect<void>
): Effect.fn.Return<Tools, never, SkillRegistry> {
  const registry = yield* SkillRegistry
  const policy = yield* Policy.current
  let offered: "all" | ReadonlySet<string> = new Set()
  let running = 0

  // A tool that was never a skill belongs to the application's registrations.
  const ever = new Set<string>()
  const isOffered = (name: string) => isSkill(name) || (!ever.has(name) && Option.isNone(registry.find(name)))
  const isSkill = (name: string) =>
    (offered === "all" || offered.has(name)) &&
    Option.isSome(registry.find(name)) &&
    Policy.shows(policy, name, scopeOf(""))

  const register: Tools["register"] = Effect.fnUntraced(function* (asked) {
    offered = asked === "all" ? asked : new Set(asked)
    const server = yield* McpServer
    const media = yield* MediaStore
    const parked = yield* ParkedCalls.make(patience)
    const known = new Map<string, Skill.AnySkill>()
    let seen: ReadonlyArray<Skill.AnySkill> | undefined
    let changes = 0
    const callCounted = (name: string, input: JsonObject) =>
      Effect.acquireUseRelease(
        Effect.sync(() => running++),
        () =>
          Effect.provideService(asking(parked, name, input, call(registry, server, name, input)), MediaStore, media),
        () => Effect.sync(() => running--)
      )
    const update = Effect.gen(function* () {
      const skills = yield* registry.all
      if (skills === seen) return
      seen = skills
      for (const skill of skills) {
        if (!isSkill(skill.name) || known.get(skill.name) === skill) continue
        known.set(skill.name, skill)
        ever.add(skill.name)
        changes++
        const tool = toolOf(skill)
        const handle = (input: unknown) => callCounted(skill.name, jsonObject(plain(input)))
        yield* tool === undefined
          ? Effect.logWarning(`the skill '${skill.name}' is not offered: its input schema is not one of a tool`)
          : server.addTool({ tool, annotations: Context.empty(), handle })
      }
      const gone = [...known.keys()].filter((name) => !isSkill(name))
      for (const name of gone) known.delete(name)
      changes += gone.length
      if (gone.length > 0) yield* server.notifications["notifications/tools/list_changed"]({})
      if (changes > 0) yield* announce
      changes = 0
    })
    yield* update
    yield* Effect.forkScoped(Effect.repeat(update, Schedule.spaced("1 second")))
  })

  return { register, isOffered, idle: idleWhen(() => running === 0) }
})

/** Waits until no call is in progress, and a moment longer for the last response. */
const idleWhen = (isIdle: () => boolean): Effect.Effect<void> =>
  Effect.sleep("50 millis").pipe(Effect.repeat({ until: isIdle }), Effect.andThen(Effect.sleep("50 millis")))

const toolOf = ({ annotations, description, inputSchema, name }: Skill.AnySkill): McpSchema.Tool | undefined => {
  const schema = decodeSchema({ ...inputSchema, type: "object" })
  if (Option.isNone(schema)) return undefined
  return new McpSchema.Tool({
    name,
    description,
    inputSchema: schema.value,
    annotations: {
      title: annotations.title,
      readOnlyHint: annotations.readonly,
      destructiveHint: annotations.destructive,
      idempotentHint: annotations.idempotent,
      openWorldHint: annotations.openWorld
    }
  })
}

const decodeSchema = Schema.decodeUnknownOption(McpSchema.ToolJson)

const scopeOf = (callId: string): Caller.Scope => ({
  runId: callId,
  rootRunId: callId,
  agent: "mcp",
  depth: 0,
  context: {}
})

/** The time that a call may wait for the person of its client, in addition to its own time. */
const patience = Duration.minutes(5)

/**
 * Provides a call with the functions that ask its client: in its session, or otherwise by responding to the call with
 * the question.
 */
const asking = Effect.fnUntraced(function* <E, R>(
  parked: ParkedCalls.ParkedCalls,
  name: string,
  input: JsonObject,
  call: (asks: ClientAsks.ClientAsks) => Effect.Effect<McpSchema.CallToolResult, E, R>
) {
  const { clientCapabilities, inputResponses = {}, requestState } = yield* McpSchema.McpRequestContext
  const session = yield* Effect.serviceOption(McpSchema.McpServerClient)
  if (Option.isSome(session)) {
    return yield* call(ClientAsks.make(clientCapabilities, ClientAsks.overSession(session.value)))
  }
  // Clients may write the keys of their arguments in another order.
  const repeated = canonical([name, input])
  if (requestState === undefined) {
    return yield* parked.start(repeated, (send) => call(ClientAsks.make(clientCapabilities, send)))
  }
  const resumed = parked.resume(repeated, requestState, inputResponses)
  if (resumed !== undefined) return yield* resumed
  const message = "requestState: no call of this tool with these arguments waits for an answer under this state"
  return yield* new McpSchema.InvalidParams({ message })
})

/** Calls the skill that is registered now. */
const call = (registry: SkillRegistry["Service"], server: McpServer["Service"], name: string, input: JsonObject) =>
  Effect.fnUntraced(function* (asks: ClientAsks.ClientAsks) {
    const found = registry.find(name)
    if (Option.isNone(found)) return failed(new ToolNotFound({ name }).message)
    const skill = found.value
    const limits = yield* Limits
    const callId = `mcp_${(yield* Random.nextInt) >>> 0}_${(yield* Random.nextInt) >>> 0}`
    const policy = yield* Policy.current
    const asked = { ...scopeOf(callId), callId, name, kind: "skill", input, effects: skill.effects } as const
    const decision = yield* Policy.askAboutSkill(policy, asked, skill, limits)
    if (decision._tag === "Denied") return failed(decision.reason)
    if (decision._tag === "Confirm") {
      if (asks.ask === undefined) return failed(`${decision.reason} (a person has to confirm this, and none is here)`)
      const shown = shorten(JSON.stringify(input), longest)
      const reply = yield* asks.ask({ message: `${decision.reason}: ${name} ${shown}` })
      if (reply._tag !== "Accepted") return failed(`${decision.reason} (it was not confirmed)`)
    }

    const redactor = yield* Redaction
    const media = yield* (yield* MediaStore).run(callId)
    const report = yield* CallProgress.make(server, redactor)
    const own = skill.timeout ?? limits.skillTimeout
    const limit = asks.ask === undefined ? own : Duration.sum(own, patience)
    const body = Effect.gen(function* () {
      const value = yield* skill.call(input, {
        ...scopeOf(callId),
        callId,
        idempotencyKey: callId,
        step: 0,
        taskId: undefined,
        runContext: null,
        dialect: "tools",
        ...asks,
        ...(report === undefined ? {} : { report })
      })
      const output = Skill.redactOutput(yield* Effect.fromResult(Skill.toOutput(value)), redactor)
      return { output, content: yield* media.admit([...output.content, ...output.media]) }
    }).pipe(Effect.provideService(MediaStore, media))
    const detail = `Skill '${name}' took longer than ${Duration.toMillis(limit)} ms`
    const late = new McpError({ server: "", reason: "timeout", detail })
    // A skill that ignores interruption is abandoned.
    const exit = yield* Effect.exit(inTime(body, limit, () => Effect.fail(late)))
    if (Exit.isFailure(exit)) return failed((yield* Skill.callError(skill, exit.cause, redactor)).message)
    const { content, output } = exit.value
    return new McpSchema.CallToolResult({
      content: yield* Effect.forEach(content, (part) => blockOf(media, part)),
      ...(isJsonObject(output.value) ? { structuredContent: output.value } : {})
    })
  }, Effect.scoped)

const failed = (text: string) => new McpSchema.CallToolResult({ isError: true, content: [textBlock(text)] })

const blockOf = Effect.fnUntraced(function* (
  media: Media,
  part: Content.Content
): Effect.fn.Return<McpSchema.ContentBlock> {
  if (!Content.isMedia(part)) return textBlock(Content.toText(part))
  const { fileId = "", mediaType: mimeType = "application/octet-stream", type } = part
  const bytes = yield* Effect.option(media.bytes(fileId))
  if (Option.isNone(bytes)) return textBlock(Content.placeholder(part))
  return type === "image" || type === "audio"
    ? { type, data: bytes.value, mimeType }
    : { type: "resource", resource: { uri: `media:${fileId}`, mimeType, blob: bytes.value } }
})

// Maximum UTF-16 units of an input that a person is shown.
const longest = 2_000

const textBlock = (text: string): McpSchema.ContentBlock => ({ type: "text", text })
