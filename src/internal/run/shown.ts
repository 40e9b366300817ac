/**
 * Values as events show them.
 */

import { plain } from "../base/json.ts"
import type { Run } from "./run.ts"

/** A value without the secrets that a redactor knows. */
export const shown = ({ redactor }: Pick<Run, "redactor">, value: unknown): unknown =>
  redactor === undefined ? value : plain(value, redactor.text)
