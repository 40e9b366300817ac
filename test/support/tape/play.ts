/** Plays the tapes of kernel.json. */
import { Effect, Layer, Stream } from "effect"
import {
  Agent,
  Kernel,
  MediaStore,
  Message,
  Protocol,
  ProtocolRegistry,
  Provider,
  Recorder,
  type RunEvent,
  RunStore,
  Skill,
  SkillRegistry,
  StreamPart
} from "kernai"
import type { Json } from "../../../src/Content.ts"
import { inputs } from "../skillSpec.ts"
import { type Part, type Returns, type Tape, scripted, mediaOf, partOf, contentOf, type Played } from "./script.ts"
import { withoutNotes } from "./conversation.ts"

const valueOf = (
  returns: Returns,
  echoed: () => string,
  params: () => Json
): Effect.Effect<unknown, { readonly message: string }> => {
  switch (returns.kind) {
    case "text":
      return Effect.succeed(returns.text ?? "")
    case "null":
      return Effect.succeed(null)
    case "json":
      return Effect.succeed(returns.value ?? null)
    case "echo":
      return Effect.succeed(`${returns.prefix ?? ""}${echoed()}`)
    case "params":
      return Effect.succeed(JSON.stringify(params()))
    case "media":
      return Effect.succeed(mediaOf({ mime: returns.mime ?? "", base64: returns.base64 ?? "" }))
    case "parts":
      return Effect.succeed((returns.parts ?? []).map(partOf))
    case "result": {
      const media =
        returns.media === undefined ? [] : Array.isArray(returns.media) ? returns.media : [returns.media as Part]
      return Effect.succeed(
        Skill.result(returns.text ?? "", {
          media: media.flatMap((part: Part) => (typeof part === "string" ? [] : [mediaOf(part)])),
          metadata: returns.metadata ?? {}
        })
      )
    }
    case "raise":
      return Effect.fail({ message: returns.message ?? "" })
    case "message":
      return Effect.succeed(
        Message.make(returns.role ?? "user", returns.content ?? returns.text ?? returns.message ?? "")
      )
    default:
      return Effect.die(new Error(`unknown kind of return '${returns.kind}'`))
  }
}

/** Plays a tape with its replies cut into characters or whole. */
export const play = Effect.fnUntraced(function* (tape: Tape, whole: boolean) {
  const requests = new Map<string, Array<Provider.Request>>()
  const generations: Array<Played["generations"][number]> = []
  let evaluations = 0
  const provider: Provider.ProviderShape = {
    name: scripted,
    stream: (request) =>
      Stream.suspend(() => {
        const scope = scopeOf(tape, request.messages)
        const seen = requests.get(scope) ?? []
        requests.set(scope, [...seen, request])
        generations.push({ scope, options: request.generation })
        const replies = scope === "root" ? tape.replies : (tape.sub_replies?.[scope] ?? [])
        const reply = replies[Math.min(seen.length, replies.length - 1)] ?? ""
        if (typeof reply !== "string") {
          return Stream.fail(
            new Provider.ProviderError({ provider: scripted, reason: "server_error", detail: reply.fail })
          )
        }
        const usage = {
          inputTokens: { total: withoutNotes(request.messages).length },
          outputTokens: { total: Array.from(reply).length }
        }
        const pieces = whole ? [reply] : Array.from(reply)
        const arrays = pieces.map((piece) => [StreamPart.text(piece)])
        return Stream.concat(
          Stream.flatMap(Stream.fromIterable(arrays), (parts) => Stream.fromIterable(parts)),
          Stream.make(StreamPart.finish("stop", usage))
        )
      })
  }
  const agent = Agent.make({
    instructions:
      tape.agent.instructions_lambda === true
        ? Effect.sync(() => `${tape.agent.instructions} v${++evaluations}`)
        : tape.agent.instructions,
    model: tape.agent.model,
    maxSteps: tape.agent.max_steps,
    gate: "listing",
    ...proseOf(tape),
    ...(tape.agent.skills === null ? {} : { skills: tape.agent.skills }),
    ...(tape.agent.protocols === null ? {} : { protocols: tape.agent.protocols }),
    ...(tape.agent.generation === undefined ? {} : { generation: generationOf(tape.agent.generation) })
  })
  const skills = (tape.skills ?? []).map((spec) =>
    Skill.make(spec.name, {
      description: spec.description ?? "",
      input: inputs(spec.inputs ?? {}),
      requires: spec.requires ?? [],
      execute: (params) =>
        valueOf(
          spec.returns,
          () => String(Object.entries(params).find(([key]) => key === spec.returns.input)?.[1] ?? ""),
          () => JSON.parse(JSON.stringify(params))
        )
    })
  )
  const protocols = (tape.protocols ?? [])
    .filter((spec) => !Protocol.reserved.has(spec.name))
    .map((spec) =>
      Protocol.make(spec.name, {
        documentation: spec.documentation ?? null,
        handle: (block) =>
          valueOf(
            spec.returns,
            () => block.content,
            () => block.content
          )
      })
    )
  const recording = Recorder.memory()
  const tasks: Array<Json> = []
  const events: Array<RunEvent.RunEvent> = []
  const collect = { record: (event: RunEvent.RunEvent) => (events.push(event), recording.record(event)) }
  let media: ReadonlyArray<string> = []
  const program = Effect.gen(function* () {
    const store = yield* MediaStore.MediaStore
    // Held open, so that the run's media can be looked at when it is over.
    const view = yield* store.run("tape")
    const given = Array.isArray(tape.input) ? tape.input : [tape.input as Part]
    const exit = yield* Effect.exit(
      Kernel.run(agent, given.map(partOf), {
        runId: "tape",
        history: (tape.history ?? []).map(({ content, role }) => Message.make(role, [content].flat().map(contentOf))),
        provider,
        ...(tape.config?.allowed_skills === undefined ? {} : { allowedSkills: tape.config.allowed_skills }),
        onTaskComplete: ({ error, input, result, taskId }) =>
          Effect.sync(() => tasks.push({ task_id: taskId, input, result, error }))
      })
    )
    media = (yield* view.list).map((stored) => stored.id)
    return exit
  })
  const exit = yield* program.pipe(
    Effect.provide(
      Layer.provideMerge(
        Kernel.layerNoProvider,
        Layer.mergeAll(
          SkillRegistry.layer(...skills),
          ProtocolRegistry.layer(...protocols),
          MediaStore.layerMemory,
          RunStore.layerMemory,
          Recorder.layer(collect)
        )
      )
    ),
    Effect.scoped
  )
  const rows = recording
    .classic()
    .map((entry) => [entry.step, entry.depth, entry.taskId, entry.event, entry.data] as const)
  const played: Played = { exit, events, requests, rows, media, tasks, evaluations, generations }
  return played
})

/**
 * The recorded library asks its own question about who is corrected: a list of
 * skills or of protocols, registered or not. Where ours has another answer
 * (BP-42), the setting gives the recorded one.
 */
const proseOf = ({ agent, protocols = [] }: Tape): { readonly prose?: "corrective" | "final" } => {
  const corrects = agent.skills !== null || (agent.protocols !== null && agent.protocols.length > 0)
  const visible = protocols.filter(
    ({ name }) => !Protocol.reserved.has(name) && (agent.protocols === null || agent.protocols.includes(name))
  )
  return corrects === (agent.skills !== null || visible.length > 0) ? {} : { prose: corrects ? "corrective" : "final" }
}

const generationOf = ({
  extra,
  max_tokens,
  temperature,
  thinking,
  top_p,
  ...rest
}: {
  readonly [key: string]: Json
}) => ({
  ...(typeof temperature === "number" ? { temperature } : {}),
  ...(typeof max_tokens === "number" ? { maxTokens: max_tokens } : {}),
  ...(typeof top_p === "number" ? { topP: top_p } : {}),
  ...(thinking === undefined || thinking === null
    ? {}
    : { thinking: thinking as { readonly budget?: number; readonly effort?: string } }),
  ...(Object.keys(rest).length === 0 && extra === undefined ? {} : { extra: { ...rest } })
})

/** A sub-agent is known by the end of its first user message. */
const scopeOf = (tape: Tape, messages: ReadonlyArray<Message.Message>): string => {
  const first = messages.find((message) => message.role === "user")
  const text = first === undefined ? "" : Message.text(first)
  const known = Object.entries(tape.task_inputs ?? {})
    .filter(([, input]) => text.endsWith(input))
    .toSorted(([, a], [, b]) => b.length - a.length)
  return known[0]?.[0] ?? "root"
}
