/** Skills for tests, and the errors a model receives from them. */
import { Effect, Schema } from "effect"
import * as Content from "../../src/Content.ts"
import * as Skill from "../../src/Skill.ts"
import { scope } from "./skillSpec.ts"

export const skillOf = <S extends Schema.Constraint>(input: S) =>
  Skill.make("probe", { description: "Probe", input, execute: (value) => Effect.succeed(value) })

/** Returns the error a model receives for invalid input. */
export const misfit = (skill: Skill.AnySkill, params: Content.JsonObject, where: Skill.CallScope = scope) =>
  Effect.map(Effect.flip(skill.call(params, where)), (error) => {
    if (!(error instanceof Skill.InvalidArguments)) throw error
    return error
  })

export const sentence = (skill: Skill.AnySkill, params: Content.JsonObject) =>
  Effect.map(misfit(skill, params), (error) => error.message.split("\n\n")[0])
