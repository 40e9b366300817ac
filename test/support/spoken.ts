/**
 * Skills whose inputs need every production of a grammar, and why a reply does not fit them: its blocks are parsed, and
 * each is checked against its schema.
 */
import { Effect, Result, Schema } from "effect"
import { BlockParser, Plan, Skill } from "kernai"

interface Tree {
  readonly name: string
  readonly children: ReadonlyArray<Tree>
}
const Tree = Schema.Struct({
  name: Schema.NonEmptyString,
  children: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
}).annotate({ identifier: 'Tree "of" <names>' })

export const skills: ReadonlyArray<Skill.AnySkill> = [
  Skill.make("search", {
    description: "",
    input: Schema.Struct({
      query: Schema.NonEmptyString,
      limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 120 }))),
      order: Schema.Literals(["new", 'old "est"', "a\\b", "</block>", "line\nend", "☃ 😀"]),
      tags: Schema.optionalKey(Schema.Array(Schema.String).check(Schema.isMaxLength(3)))
    }),
    execute: () => Effect.succeed("")
  }),
  Skill.make("measure", {
    description: "",
    input: Schema.Struct({
      'a key with "quotes" and <block>': Schema.NullOr(Schema.Boolean),
      share: Schema.Finite.check(Schema.isGreaterThan(0.25), Schema.isLessThanOrEqualTo(2.5)),
      below: Schema.Finite.check(Schema.isLessThan(-0.125)),
      any: Schema.Number,
      exact: Schema.Int.check(Schema.isBetween({ minimum: -1050, maximum: 98 })),
      point: Schema.Tuple([Schema.Finite, Schema.Int]),
      pair: Schema.TupleWithRest(Schema.Tuple([Schema.Boolean]), [Schema.Int]),
      whatever: Schema.optionalKey(Schema.Json)
    }),
    execute: () => Effect.succeed("")
  }),
  Skill.make("grow", { description: "", input: Tree, execute: () => Effect.succeed("") }),
  Skill.make("draw", {
    description: "",
    input: Schema.Struct({
      shape: Schema.Union([
        Schema.TaggedStruct("Circle", { radius: Schema.Finite }),
        Schema.TaggedStruct("Line", { to: Schema.Record(Schema.String, Schema.Int) })
      ]),
      id: Schema.String.check(Schema.isUUID()),
      code: Schema.TemplateLiteral(["v", Schema.Literals(["1", "2.0"]), ".", Schema.Literals(["a", "b"])]),
      label: Schema.String.check(Schema.isPattern(/^[a-z"<\\]{2,8}$/u)),
      big: Schema.BigInt,
      at: Schema.optionalKey(Schema.Never),
      rest: Schema.StructWithRest(Schema.Struct({ x: Schema.Int }), [
        Schema.Record(Schema.String, Schema.Union([Schema.Int, Schema.String]))
      ])
    }),
    execute: () => Effect.succeed("")
  }),
  Skill.make("say", { description: "", input: Schema.String, execute: () => Effect.succeed("") }),
  Skill.make("ping", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed("") })
]

const Answer = Schema.Struct({
  title: Schema.String,
  score: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))
})
export const output = Skill.make("answer", {
  description: "",
  input: Answer,
  execute: () => Effect.succeed("")
}).inputSchema

const decodeAnswer = Schema.decodeUnknownResult(Schema.fromJsonString(Answer))
/** Returns why a text is not a valid answer, if so. */
export const answerFault = (text: string): string | undefined =>
  Result.isFailure(decodeAnswer(text)) ? `the answer ${text} does not fit` : undefined

/** The scope of a call outside of a run. */
export const scope: Skill.CallScope = {
  runId: "",
  rootRunId: "",
  callId: "",
  idempotencyKey: "",
  step: 0,
  depth: 0,
  taskId: undefined,
  runContext: null
}
export const byName = new Map(skills.map((skill) => [skill.name, skill]))

/** Returns why a text is not a valid reply, if so: parses its blocks and checks each against its schema. */
export const replyFault =
  (isTyped: boolean) =>
  (reply: string): string | undefined => {
    const { blocks, text, unclosed } = BlockParser.parse(reply)
    if (unclosed !== undefined || text.trim() !== "" || blocks.length === 0) return "it is not blocks alone"
    for (const { content, name, type } of blocks) {
      if (type === "final") {
        if (isTyped && answerFault(content) !== undefined) return answerFault(content)
      } else if (type === "plan") {
        const isWorkflow = blocks.length === 1
        if (isWorkflow === Plan.isProse(content)) return `the plan ${content} is of the wrong kind`
        const parsed = Plan.validate(content)
        // What a grammar cannot say: that ids differ, and that nothing waits in a circle.
        if (isWorkflow && Result.isFailure(parsed) && !["duplicate_ids", "cyclic"].includes(parsed.failure.reason))
          return parsed.failure.message
      } else if (type === "command") {
        const skill = byName.get(name ?? "")
        if (name?.startsWith("/") === true && content === "") continue
        if (skill === undefined) return `there is no skill ${name}`
        const called = Effect.runSync(Effect.result(skill.call(skill.parameters(content), scope)))
        if (Result.isFailure(called)) return `${name} refused ${content}: ${String(called.failure)}`
      } else if (type !== "mcp" && type !== "graphql") return `there is no block ${type}`
    }
    return undefined
  }
