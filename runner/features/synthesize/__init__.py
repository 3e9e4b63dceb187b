"""Synthesise queries from chunks: validate, select bundles, generate, validate again, save."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="generate a dataset from your documents, by rules or by an LLM",
        usage="[source.path=PATH]",
        settings={
            "": "runner.features.synthesize.pipeline.Synthesis",
            "output": "runner.features.synthesize.command.SynthesizeSettings",
        },
        exit_codes={1: "no query was accepted, or the language model stopped answering", 2: "invalid command"},
        documents=[Document("run queries summary", "run id, path, and the content of the summary")],
    )
)
