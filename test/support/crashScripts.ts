/**
 * The runs that are cut off everywhere (reliability.md section 5), each with skills that write.
 */
import { Effect, Layer } from "effect"
import { Agent, Hooks, Policy, Provider, Skill, SkillRegistry } from "kernai"
import { type CrashMatrix, MockProvider } from "kernai/testing"

const model = { id: "scripted", capabilities: ["text"] as const }

/** Answers by what was said before, so that every process is told the same. */
const speaks = (replies: ReadonlyArray<MockProvider.Reply>, tasks: { readonly [input: string]: string } = {}) =>
  MockProvider.layerOf(
    MockProvider.make().onCall((request: Provider.Request) => {
      const asked = request.messages.flatMap((message) => message.content).map(textOf)
      const task = Object.entries(tasks).find(([input]) => asked.some((text) => text.endsWith(input)))
      const said = request.messages.filter((message) => message.role === "assistant").length
      return task === undefined || said > 1 ? (replies[said] ?? "") : childReply(task[1], said)
    })
  )

const childReply = (name: string, said: number): MockProvider.Reply =>
  said === 0
    ? `<block type="command" name="pay">${JSON.stringify({ to: name })}</block>`
    : `<block type="final">${name} is paid</block>`

const textOf = (part: object): string => ("text" in part && typeof part.text === "string" ? part.text : "")

const skill = (name: string, effects: Skill.Effects = "write", takes = 0) =>
  Skill.dynamic(name, {
    description: name,
    effects,
    inputSchema: { type: "object" },
    execute: (input) => Effect.as(Effect.sleep(takes), `${name} ${JSON.stringify(input)}`)
  })

const skills = SkillRegistry.layer(skill("pay"), skill("look", "read"), skill("send", "idempotent", 20), skill("file"))

const agent = (name: string, options: Partial<Agent.Options<never>> = {}) =>
  Agent.make({ name, instructions: "", model, skills: "all", dialect: "tools", ...options })

const calls = (...calls: ReadonlyArray<readonly [id: string, name: string]>): MockProvider.Reply => ({
  calls: calls.map(([id, name]) => ({ id, name, input: { to: id } }))
})

const one = calls(["call-a", "pay"])
const three = calls(["call-a", "pay"], ["call-b", "send"], ["call-c", "file"])
const hooks = (hooks: Hooks.Hooks) => Hooks.layer(hooks)

const plan = JSON.stringify({
  goal: "pay both",
  strategy: "parallel",
  tasks: [
    { id: "rent", input: "pay the rent", parallel: true },
    { id: "power", input: "pay the power", parallel: true },
    { id: "sum", input: "write it down", parallel: false, depends_on: ["rent", "power"] }
  ]
})

const failsOnce = () => {
  let failed = false
  return MockProvider.layerOf(
    MockProvider.make().onCall((request) => {
      const said = request.messages.filter((message) => message.role === "assistant").length
      if (said === 0) return one
      if (failed) return "done"
      failed = true
      return new Provider.ProviderError({ provider: "mock", reason: "server_error", detail: "busy" })
    })
  )
}

/** Agents whose models have their names, each with a script of its own: the reply to so many answers. */
const voices = (script: { readonly [agent: string]: ReadonlyArray<MockProvider.Reply> }) =>
  MockProvider.layerOf(
    MockProvider.make().onCall((request) => {
      const said = request.messages.filter((message) => message.role === "assistant").length
      return script[request.model.id]?.[said] ?? "done"
    })
  )

const member = (name: string, options: Partial<Agent.Options<never>> = {}) =>
  agent(name, { model: { ...model, id: name }, ...options })

const asks = (...names: ReadonlyArray<string>): MockProvider.Reply => ({
  calls: names.map((name) => ({ id: `ask-${name}`, name, input: { input: `do ${name}` } }))
})

/** A desk that asks two agents at once, one of which asks another; both pay. */
const clerk = member("clerk")
const refunds = member("refunds", { agents: [clerk] })
const billing = agent("billing", { model: { ...model, id: "billing" }, dialect: "blocks" })
const desk = member("desk", { agents: [billing, refunds], concurrency: 2 })

/** A lead whose clerk works in the background, for longer than the lead has something to say. */
const backClerk = member("clerk", { background: true })
const lead = member("lead", { agents: [backClerk] })
const clerkInBackground: MockProvider.Reply = {
  calls: [{ id: "ask-clerk", name: "clerk", input: { input: "do it", background: true } }]
}

const confirmsPay = Policy.layer((call) =>
  Effect.succeed(call.name === "pay" ? Policy.confirm("it costs") : Policy.allowed)
)

/** The subjects, made anew for each test: one of them remembers that it failed. */
export const subjects = (): ReadonlyArray<CrashMatrix.Subject> => [
  { name: "plain", agent: agent("plain"), input: "go", layer: Layer.merge(skills, speaks(["done"])) },
  { name: "tool", agent: agent("tool"), input: "go", layer: Layer.merge(skills, speaks([one, "done"])) },
  { name: "three tools", agent: agent("three"), input: "go", layer: Layer.merge(skills, speaks([three, "done"])) },
  {
    name: "approval",
    agent: agent("approval"),
    input: "go",
    layer: Layer.mergeAll(
      skills,
      speaks([three, "done"]),
      Policy.layer((call) => Effect.succeed(call.name === "pay" ? Policy.confirm("it costs") : Policy.allowed))
    )
  },
  {
    name: "background",
    agent: lead,
    input: "go",
    layer: Layer.merge(
      skills,
      voices({ lead: [clerkInBackground, "I wait.", one, "done"], clerk: [calls(["call-s", "send"]), one, "paid"] })
    )
  },
  {
    name: "workflow",
    agent: agent("workflow", { dialect: "blocks", taskConcurrency: 2 }),
    input: "go",
    layer: Layer.merge(
      skills,
      speaks([`<block type="plan">${plan}</block>`, `<block type="final">all is paid</block>`], {
        "pay the rent": "rent",
        "pay the power": "power",
        "write it down": "sum"
      })
    )
  },
  {
    name: "finish by hook",
    agent: agent("finish"),
    input: "go",
    layer: Layer.mergeAll(
      skills,
      speaks([three, "done"]),
      hooks({
        onToolCallCompleted: ({ result }) =>
          Effect.succeed(
            result.callId === "call-b"
              ? { context: { enough: true }, control: { _tag: "Finish", reason: "enough" } }
              : undefined
          )
      })
    )
  },
  {
    name: "agents",
    agent: desk,
    input: "go",
    layer: Layer.mergeAll(
      skills,
      confirmsPay,
      voices({
        desk: [asks("billing", "refunds"), "all done"],
        billing: [`<block type="command" name="pay">{"to": "eva"}</block>`, `<block type="final">billed</block>`],
        refunds: [asks("clerk"), "refunded"],
        clerk: [calls(["call-a", "pay"], ["call-b", "send"]), "paid back"]
      })
    )
  },
  {
    name: "hand-off",
    agent: member("desk", {
      handoffs: [agent("billing", { model: { ...model, id: "billing" }, dialect: "blocks", handoffs: ["desk"] })]
    }),
    input: "go",
    layer: Layer.merge(
      skills,
      voices({
        desk: [calls(["call-a", "pay"], ["call-b", "transfer_to_billing"]), "", "", "done"],
        billing: [
          "",
          `<block type="command" name="pay">{"to": "eva"}</block>`,
          `<block type="command" name="transfer_to_desk"></block>`
        ]
      })
    )
  },
  { name: "model failure", agent: agent("failure"), input: "go", layer: Layer.merge(skills, failsOnce()) },
  {
    name: "pause",
    agent: agent("pause"),
    input: "go",
    layer: Layer.mergeAll(
      skills,
      speaks([three, "done"]),
      hooks({
        onModelCompleted: ({ context }) =>
          Effect.succeed(context["seen"] === true ? undefined : { control: { _tag: "Pause", reason: "look" } }),
        onToolCallStarted: ({ call, context }) =>
          Effect.succeed(
            call.callId === "call-b" && context["sure"] !== true
              ? { control: { _tag: "Pause", reason: "sure?" } }
              : undefined
          )
      })
    ),
    answer: (state) => ({ context: { sure: state.status.type === "paused" && state.status.reason === "sure?" } })
  }
]
