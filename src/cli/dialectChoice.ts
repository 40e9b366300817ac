/** Compares the dialects of models by the results of their scenarios. */

import type { DialectName } from "../Dialect.ts"
import * as Model from "../Model.ts"
import { modelOf, parse } from "../ModelRegistry.ts"
import * as Result from "effect/Result"

export const dialects: ReadonlyArray<DialectName> = ["blocks", "tools"]

/** The measurements of one run of a scenario file. */
export interface Measured {
  readonly model: string
  readonly dialect: DialectName | undefined
  readonly status: "ok" | "fail" | "skipped" | "error"
  readonly turns: number | null
  readonly tokens: number | null
}

/**
 * The results of a model in a dialect. Turns and tokens are means over the runs that succeeded, or null without any.
 */
interface Measure {
  readonly model: string
  readonly dialect: DialectName
  readonly runs: number
  readonly ok: number
  readonly turns: number | null
  readonly tokens: number | null
}

/** The measurements, and the dialect that each model speaks better. */
interface Choice {
  readonly measures: ReadonlyArray<Measure>
  /**
   * The models with their dialects, in the form of `Model.Model`. A model that succeeded in neither dialect is omitted.
   */
  readonly models: ReadonlyArray<Model.Model>
}

/** Compares the dialects of all models. Runs that were skipped do not count. */
export const choose = (runs: ReadonlyArray<Measured>): Choice => {
  const models = [...new Set(runs.map(({ model }) => model))]
  const measures = models.flatMap((model) =>
    dialects.map((dialect) =>
      measure(
        model,
        dialect,
        runs.filter((run) => run.model === model && run.dialect === dialect && run.status !== "skipped")
      )
    )
  )
  return {
    measures,
    models: models.flatMap((model) => {
      const best = measures.filter((measure) => measure.model === model && measure.ok > 0).toSorted(compare)[0]
      return best === undefined ? [] : [{ ...named(model), dialect: best.dialect }]
    })
  }
}

const measure = (model: string, dialect: DialectName, runs: ReadonlyArray<Measured>): Measure => {
  const ok = runs.filter(({ status }) => status === "ok")
  return {
    model,
    dialect,
    runs: runs.length,
    ok: ok.length,
    turns: mean(ok.map(({ turns }) => turns)),
    tokens: mean(ok.map(({ tokens }) => tokens))
  }
}

const mean = (values: ReadonlyArray<number | null>): number | null => {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length
}

/** Orders the better one first: by the share of successes, then by tokens, then by turns. */
const compare = (a: Measure, b: Measure): number =>
  b.ok / b.runs - a.ok / a.runs || less(a.tokens, b.tokens) || less(a.turns, b.turns)

const less = (a: number | null, b: number | null): number => (a === null || b === null ? 0 : a - b)

const named = (name: string): Model.Model =>
  Result.match(parse(name), {
    onFailure: () => Model.make(name),
    onSuccess: ({ model, provider }) => modelOf(provider, model)
  })

/** Returns a line about a model in both dialects. */
export const lineOf = (model: string, { measures, models }: Choice): string => {
  const id = named(model).id
  const best = models.find((found) => found.id === id)?.dialect
  const facts = measures
    .filter((measure) => measure.model === model)
    .map(({ dialect, ok, runs, tokens, turns }) => {
      const means = [amount(turns, "turns"), amount(tokens, "tokens")].filter((text) => text !== "").join(", ")
      return `${dialect} ${ok} of ${runs} ok${means === "" ? "" : `, ${means}`}`
    })
  return `${facts.join("; ")}; ${best === undefined ? "neither" : best}`
}

const amount = (value: number | null, unit: string): string =>
  value === null ? "" : `${Math.round(value * 10) / 10} ${unit}`
