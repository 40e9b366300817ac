/** What a scenario gives its kernel: provider, skills, middleware, policy and hooks that follow its script. */
import { type Call, Hooks, Middleware, Policy, Provider, Skill, StreamPart } from "kernai"
import { Effect, Layer, Stream } from "effect"
import { type HookEntry, type World, type Seen, Scripted, scripted, object } from "./script.ts"
import { at, type Point } from "./point.ts"

export const provider = (world: World, point: Point): Provider.ProviderShape => ({
  name: "scripted",
  stream: () =>
    Stream.unwrap(
      Effect.gen(function* () {
        world.modelCalls++
        yield* at(point, "model")
        const { script } = world.scenario.config
        const reply = script[Math.min(world.position, script.length - 1)] ?? { text: "" }
        if (reply.error !== undefined) {
          world.position++
          return Stream.fail(
            new Provider.ProviderError({ provider: "scripted", reason: "server_error", detail: reply.error })
          )
        }
        const parts: Array<StreamPart.StreamPart> = []
        // A scripted reply is an answer, whatever its words: nothing at all would be none.
        const isEmpty = (reply.text ?? "") === "" && (reply.toolCalls ?? []).length === 0
        if (isEmpty || reply.text !== undefined) parts.push(StreamPart.text(isEmpty ? "done" : (reply.text ?? "")))
        for (const call of reply.toolCalls ?? []) {
          parts.push({ type: "tool-call", id: call.id, name: call.name, params: call.input })
        }
        // A reply that is only talk stands for an informational one: the run goes on after a corrective.
        const reason =
          reply.outcome === "informational"
            ? "length"
            : parts.some((part) => part.type === "tool-call")
              ? "tool-calls"
              : "stop"
        parts.push(StreamPart.finish(reason))
        return Stream.concat(
          Stream.fromIterable(parts),
          Stream.fromEffectDrain(
            Effect.uninterruptible(Effect.suspend(() => (world.position++, at(point, "model_returned"))))
          )
        )
      })
    )
})

export const skills = (world: World, seen: Seen, point: Point): ReadonlyArray<Skill.AnySkill> =>
  Object.entries(world.scenario.config.tools).map(([name, tool]) =>
    Skill.dynamic(name, {
      description: name,
      inputSchema: { type: "object" },
      effects: tool.idempotent === true ? "idempotent" : "write",
      execute: (input, context) =>
        Effect.gen(function* () {
          const id = scripted(world, context.callId)
          world.executions.push(id)
          world.inputs.push({ toolCallId: id, input })
          seen.toolsRun.push(id)
          // Calls that may run at once do: each of them takes a moment.
          if ((world.scenario.config.toolConcurrency ?? 1) > 1) yield* Effect.yieldNow
          yield* at(point, `tool:${id}`)
          if (tool.error !== undefined) return yield* new Scripted({ message: tool.error })
          return tool.output ?? null
        })
    })
  )

export const middleware = (world: World): Middleware.Middleware => ({
  callTool: (run, next) => {
    const broken = world.scenario.config.tools[run.call.name ?? ""]?.middlewareThrows
    return broken === undefined ? next(run) : Effect.die(new Error(broken))
  }
})

export const policy = (world: World) => {
  const rules = world.scenario.config.policy
  if (rules === undefined) return Layer.empty
  return Policy.layer((call) => {
    const rule = rules[call.name]
    if (rule === undefined || rule.decision === "allow") return Effect.succeed(Policy.allowed)
    return Effect.succeed(
      rule.decision === "confirm" ? Policy.confirm(rule.reason ?? "") : Policy.denied(rule.reason ?? "")
    )
  })
}

export const hooks = (world: World, seen: Seen, point: Point) => {
  const decide = (
    name: string,
    args: Hooks.HookArgs,
    call?: { readonly callId: string; readonly name: string | null }
  ) =>
    Effect.gen(function* () {
      const label = call === undefined ? name : `${name}:${scripted(world, call.callId)}`
      seen.hooks.push(label)
      yield* at(point, `hook:${name}`)
      if (call !== undefined) yield* at(point, `hook:${label}`)
      const entry = (world.scenario.config.hooks ?? []).find((entry) => fits(world, entry, name, args, call))
      if (entry === undefined) return undefined
      world.used.set(entry, (world.used.get(entry) ?? 0) + 1)
      if (entry.decision.throw !== undefined) return yield* new Scripted({ message: entry.decision.throw })
      return entry.decision
    })
  const simple = (name: string) => (args: Hooks.HookArgs) =>
    Effect.map(decide(name, args), (decision) => (decision === undefined ? undefined : common(decision)))
  return Hooks.layer({
    onRunStarted: simple("onRunStarted"),
    onTurnStarted: simple("onTurnStarted"),
    onTurnPrepared: (args) =>
      Effect.map(decide("onTurnPrepared", args), (decision) => ({
        ...(decision === undefined ? {} : common(decision)),
        value: { ...args.prepared, model: { id: "scripted", capabilities: ["text"] } }
      })),
    onModelStarted: simple("onModelStarted"),
    onModelRestarted: (args) => Effect.asVoid(decide("onModelRestarted", args)),
    onModelCompleted: simple("onModelCompleted"),
    onToolCallsStarted: (args) =>
      Effect.map(decide("onToolCallsStarted", args), (decision) => {
        if (decision === undefined) return undefined
        const { keep, mergeInput } = decision.value ?? {}
        if (keep !== undefined)
          return {
            ...common(decision),
            value: args.calls.filter((call) => keep.includes(scripted(world, call.callId)))
          }
        if (mergeInput !== undefined) {
          return {
            ...common(decision),
            value: args.calls.map((call) => ({ ...call, input: { ...object(call.input), ...mergeInput } }))
          }
        }
        return common(decision)
      }),
    onToolCallStarted: (args) =>
      Effect.map(
        decide("onToolCallStarted", args, args.call),
        (decision): Hooks.HookResult<Hooks.Review> | undefined => {
          if (decision === undefined) return undefined
          const { mergeInput, wrapCommand, ...value } = decision.value ?? {}
          if (value.type === "skip") {
            return {
              ...common(decision),
              value: {
                _tag: "Skip",
                result:
                  value.error === undefined
                    ? {
                        output: [
                          {
                            type: "text",
                            text: typeof value.output === "string" ? value.output : JSON.stringify(value.output)
                          }
                        ]
                      }
                    : { error: { name: "Skipped", message: value.error, recoverable: true } }
              }
            }
          }
          const input = object(args.call.input)
          if (mergeInput !== undefined)
            return { ...common(decision), value: { _tag: "Rewrite", input: { ...input, ...mergeInput } } }
          if (wrapCommand !== undefined) {
            return {
              ...common(decision),
              value: { _tag: "Rewrite", input: { ...input, command: `${wrapCommand} ${String(input["command"])}` } }
            }
          }
          return common(decision)
        }
      ),
    onToolCallCompleted: (args) =>
      Effect.map(decide("onToolCallCompleted", args, args.result), (decision) =>
        decision === undefined ? undefined : common(decision)
      ),
    onToolCallsCompleted: simple("onToolCallsCompleted"),
    onTurnCompleted: simple("onTurnCompleted"),
    onRunCompleted: simple("onRunCompleted"),
    onRunFailed: simple("onRunFailed")
  })
}

const common = ({ context, control }: HookEntry["decision"]): Hooks.HookResult => ({
  ...(context === undefined ? {} : { context }),
  ...(control === undefined ? {} : controlOf(control))
})

/** A scenario names a control as the wire does. */
const controlOf = (control: NonNullable<HookEntry["decision"]["control"]>): Hooks.HookResult => {
  switch (control.type) {
    case "pause":
      return Hooks.pause(control.reason, control.metadata)
    case "finish":
      return Hooks.finish(control.reason, control.metadata)
    case "continue":
      return { control: { _tag: "Continue" } }
  }
}

const fits = (
  world: World,
  entry: HookEntry,
  name: string,
  args: Hooks.HookArgs,
  call: Pick<Call.Call, "callId" | "name"> | undefined
): boolean => {
  const match = entry.match ?? {}
  return (
    entry.hook === name &&
    (entry.times === undefined || (world.used.get(entry) ?? 0) < entry.times) &&
    (match.toolName === undefined || match.toolName === call?.name) &&
    (match.toolCallId === undefined || (call !== undefined && match.toolCallId === scripted(world, call.callId))) &&
    (match.turn === undefined || match.turn === args.turn?.turn) &&
    (match.contextLacks === undefined || !args.context[match.contextLacks]) &&
    (match.contextHas === undefined || Boolean(args.context[match.contextHas]))
  )
}
