import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.DriverManager;

/**
 * Connects by each line of standard input: a library's name, a tab and a connection string. Answers each with a line: tls, clear, or
 * refused and why.
 */
class Connect {
    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            System.out.println(answer(line.split("\t")[1]));
        }
    }

    static String answer(String url) {
        try (var connection = DriverManager.getConnection(url);
                var statement = connection.createStatement();
                var rows = statement.executeQuery("select ssl from pg_stat_ssl where pid = pg_backend_pid()")) {
            rows.next();
            return rows.getBoolean(1) ? "tls" : "clear";
        } catch (Exception e) {
            return "refused: " + String.valueOf(e.getMessage()).replace('\n', ' ');
        }
    }
}
