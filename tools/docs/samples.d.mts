/** Samples of these pages that run in a browser, by their text, with the name of their module. */
export declare const runnable: (pages: ReadonlyArray<string>) => ReadonlyMap<string, string>
/** Writes the modules of the samples and their bundle below the assets of the site. */
export declare const writeSamples: (samples: ReadonlyMap<string, string>, assets: string) => Promise<void>
