/**
 * The promises about models: what a vendor said, what a model can take, and what it costs.
 */
import { type Line, ofFiles, tested } from "./support.ts"

export const models = async (): Promise<ReadonlyArray<Line>> => [
  ofFiles(tested, "the vendor's own words reach the developer, of every adapter, and no model (synthetic refusals)", [
    "test/provider/vendorWords.test.ts"
  ]),
  ofFiles(tested, "replies that are cut count what was reported and what arrived", ["test/provider/cutUsage.test.ts"]),
  ofFiles(tested, "media both ways: what each of five formats is sent, and what a model makes", [
    "test/provider/media.test.ts"
  ]),
  ofFiles(tested, "ProviderSuite passes five adapters over recorded and synthetic replies, and finds eight mistakes", [
    "test/testing/ProviderSuite.test.ts"
  ]),
  ofFiles(tested, "Resilience.on: retries around the first word, fallback, reads, rate, circuit; off by one word", [
    "test/provider/resilienceOn.test.ts"
  ]),
  ofFiles(tested, "the catalogue has its form and dated sources; doctor and registry agree", [
    "test/internal/words/catalogue.test.ts"
  ]),
  ofFiles(tested, "Provider.forbidReal: no request of any adapter is sent", ["test/provider/forbidReal.test.ts"])
]
