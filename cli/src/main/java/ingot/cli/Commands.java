package ingot.cli;

import picocli.CommandLine;

/// Makes the commands, each of which gets the screen.
record Commands(Screen screen) implements CommandLine.IFactory {
    @Override
    public <K> K create(Class<K> type) throws Exception {
        Object command;
        if (type == Train.class) {
            command = new Train(screen);
        } else if (type == FineTune.class) {
            command = new FineTune(screen);
        } else if (type == Predict.class) {
            command = new Predict(screen);
        } else if (type == Generate.class) {
            command = new Generate(screen);
        } else if (type == Embed.class) {
            command = new Embed(screen);
        } else if (type == Eval.class) {
            command = new Eval(screen);
        } else if (type == Explain.class) {
            command = new Explain(screen);
        } else if (type == Plan.class) {
            command = new Plan(screen);
        } else if (type == Store.class) {
            command = new Store(screen);
        } else if (type == Export.class) {
            command = new Export(screen);
        } else if (type == Import.class) {
            command = new Import(screen);
        } else if (type == Doctor.class) {
            command = new Doctor(screen);
        } else {
            return CommandLine.defaultFactory().create(type);
        }
        return type.cast(command);
    }
}
