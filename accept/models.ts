/**
 * The promises about models: what a vendor said, what a model can take, and what it costs.
 */
import { type Line, ofFiles, tested } from "./support.ts"

export const models = async (): Promise<ReadonlyArray<Line>> => [
  ofFiles(tested, "the vendor's own words reach the developer, of every adapter, and no model (synthetic refusals)", [
    "test/provider/vendorWords.test.ts"
  ])
]
