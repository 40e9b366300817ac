/**
 * The example skills. The recorded conversations were made with them, so a replay runs them again.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AnySkill } from "../../Skill.ts"
import * as Skill from "../../Skill.ts"
import { calculate } from "./calculator.ts"

export const userDatabase = Skill.make("user_database", {
  description: "Fetch all users of the example database: id, name, email, status, plan, signup_date, as a JSON array",
  input: Schema.Struct({ query: Schema.String.annotate({ description: "fetch all" }) }),
  effects: "read",
  // One JSON text, as it was recorded: a list would reach the model element by element.
  execute: () => Effect.succeed(JSON.stringify(users))
})

export const calculator = Skill.make("calculator", {
  description: "Work out a sum of numbers with + - * / and parentheses. Whole numbers divide to whole numbers",
  input: Schema.Struct({ expression: Schema.String }),
  effects: "read",
  execute: ({ expression }) => {
    const result = calculate(expression)
    return result === undefined
      ? Effect.fail(new NoResult({ reason: `${expression} has no value: use numbers, + - * / and parentheses` }))
      : Effect.succeed(result)
  }
})

const weather = Skill.make("weather", {
  description: "Get the example weather of a city, as JSON",
  input: Schema.Struct({ city: Schema.String }),
  effects: "read",
  execute: ({ city }) => {
    const found = cities.get(city.trim().toLowerCase())
    return found === undefined
      ? Effect.fail(new NoResult({ reason: `no weather for ${city}; ask for ${Array.from(cities.keys()).join(", ")}` }))
      : Effect.succeed(found)
  }
})

/** Fails when an example skill has no result for its input. */
class NoResult extends Schema.TaggedError<NoResult>()("NoResult", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

export const all: ReadonlyArray<AnySkill> = [userDatabase, calculator, weather]

/** The example skills that fit any question. */
export const general: ReadonlyArray<AnySkill> = [userDatabase, calculator]

const user = (id: number, name: string, status: string, plan: string, signup_date: string) => ({
  id,
  name,
  email: `${name.split(" ", 1)[0]?.toLowerCase()}@example.com`,
  status,
  plan,
  signup_date
})

const users = [
  user(1, "Alice Martin", "active", "premium", "2024-01-15"),
  user(2, "Bob Smith", "active", "free", "2024-03-22"),
  user(3, "Charlie Brown", "inactive", "premium", "2023-11-08"),
  user(4, "Diana Prince", "active", "premium", "2024-06-01"),
  user(5, "Eve Wilson", "active", "free", "2024-07-19"),
  user(6, "Frank Lee", "inactive", "free", "2023-09-30")
]

const cities: ReadonlyMap<string, { readonly [fact: string]: string | number }> = new Map([
  ["london", { temp: 11, condition: "Rainy", wind: "25 km/h", humidity: 88 }],
  ["paris", { temp: 18, condition: "Partly cloudy", wind: "12 km/h", humidity: 65 }]
])
