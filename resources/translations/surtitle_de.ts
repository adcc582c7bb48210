<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>About</name>
    <message>
        <source>About Surtitle</source>
        <translation>Über Surtitle</translation>
    </message>
    <message>
        <source>Live translated subtitles on your own machine. Nothing leaves it. The program is under the Apache License 2.0; models and recordings have terms of their own:</source>
        <translation>Übersetzte Live-Untertitel auf dem eigenen Rechner. Nichts verlässt ihn. Das Programm steht unter der Apache License 2.0; für Modelle und Aufnahmen gelten eigene Bedingungen:</translation>
    </message>
    <message>
        <source>Notices and licences of others</source>
        <translation>Hinweise und Lizenzen anderer</translation>
    </message>
</context>
<context>
    <name>Actions</name>
    <message>
        <source>Start or stop</source>
        <translation>Starten oder beenden</translation>
    </message>
    <message>
        <source>Restart the engine</source>
        <translation>Engine neu starten</translation>
    </message>
    <message>
        <source>Presets and languages…</source>
        <translation>Voreinstellungen und Sprachen…</translation>
    </message>
    <message>
        <source>Microphone…</source>
        <translation>Mikrofon…</translation>
    </message>
    <message>
        <source>Transcript…</source>
        <translation>Mitschrift…</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>Exportieren…</translation>
    </message>
    <message>
        <source>Settings…</source>
        <translation>Einstellungen…</translation>
    </message>
    <message>
        <source>Appearance and shortcuts…</source>
        <translation>Aussehen und Tastenkürzel…</translation>
    </message>
    <message>
        <source>Engine and log…</source>
        <translation>Engine und Protokoll…</translation>
    </message>
    <message>
        <source>Show what was heard</source>
        <translation>Gehörtes anzeigen</translation>
    </message>
    <message>
        <source>Reading mode: stable text only</source>
        <translation>Lesemodus: nur fester Text</translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation>Größere Schrift</translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation>Kleinere Schrift</translation>
    </message>
    <message>
        <source>More lines</source>
        <translation>Mehr Zeilen</translation>
    </message>
    <message>
        <source>Fewer lines</source>
        <translation>Weniger Zeilen</translation>
    </message>
    <message>
        <source>Let clicks through the window</source>
        <translation>Klicks durch das Fenster lassen</translation>
    </message>
    <message>
        <source>Menu</source>
        <translation>Menü</translation>
    </message>
    <message>
        <source>About Surtitle…</source>
        <translation>Über Surtitle…</translation>
    </message>
    <message>
        <source>Minimise</source>
        <translation>Minimieren</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Stopp</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>Start</translation>
    </message>
</context>
<context>
    <name>Browser</name>
    <message>
        <source>A page with the subtitles for OBS&apos;s browser source, or any browser on this machine. Nobody else can reach it.</source>
        <translation>Eine Seite mit den Untertiteln für die Browserquelle von OBS oder einen Browser auf diesem Rechner. Von anderswo ist sie nicht zu erreichen.</translation>
    </message>
    <message>
        <source>&amp;Serve the page</source>
        <translation>&amp;Seite bereitstellen</translation>
    </message>
    <message>
        <source>&amp;Port</source>
        <translation>&amp;Port</translation>
    </message>
    <message>
        <source>&amp;Address</source>
        <translation>&amp;Adresse</translation>
    </message>
    <message>
        <source>&amp;Copy the address</source>
        <translation>Adresse &amp;kopieren</translation>
    </message>
    <message>
        <source>Appearance and shortcuts</source>
        <translation>Aussehen und Tastenkürzel</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>Aussehen</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>OBS and browsers</source>
        <translation>OBS und Browser</translation>
    </message>
</context>
<context>
    <name>ControlBar</name>
    <message>
        <source>Controls</source>
        <translation>Bedienung</translation>
    </message>
</context>
<context>
    <name>Engine</name>
    <message>
        <source>Recogniser</source>
        <translation>Spracherkennung</translation>
    </message>
    <message>
        <source>Translator</source>
        <translation>Übersetzung</translation>
    </message>
    <message>
        <source>{seconds:.1f} s behind the voice.</source>
        <translation>{seconds:.1f} s hinter der Stimme.</translation>
    </message>
    <message>
        <source>{seconds:.1f} s of sound wait to be recognised: the machine is too slow.</source>
        <translation>{seconds:.1f} s Ton warten auf die Erkennung: Der Rechner ist zu langsam.</translation>
    </message>
    <message>
        <source>Close other programs, or choose a preset with a smaller recogniser.</source>
        <translation>Andere Programme schließen oder eine Voreinstellung mit kleinerer Spracherkennung wählen.</translation>
    </message>
    <message>
        <source>One translation takes {seconds:.1f} s.</source>
        <translation>Eine Übersetzung dauert {seconds:.1f} s.</translation>
    </message>
    <message>
        <source>Close other programs, or choose a preset with a smaller translator.</source>
        <translation>Andere Programme schließen oder eine Voreinstellung mit kleinerem Übersetzungsmodell wählen.</translation>
    </message>
    <message>
        <source>The translation waits for words that have not been said yet; nothing is slow.</source>
        <translation>Die Übersetzung wartet auf Wörter, die noch nicht gesagt sind; nichts ist zu langsam.</translation>
    </message>
    <message>
        <source>It catches up when the sentence goes on.</source>
        <translation>Sie holt auf, sobald der Satz weitergeht.</translation>
    </message>
    <message>
        <source>It is growing.</source>
        <translation>Der Rückstand wächst.</translation>
    </message>
    <message>
        <source>There is no log yet.</source>
        <translation>Es gibt noch kein Protokoll.</translation>
    </message>
    <message>
        <source>Engine and log</source>
        <translation>Engine und Protokoll</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Behind the voice</source>
        <translation>Rückstand zur Stimme</translation>
    </message>
    <message>
        <source>Attention capture</source>
        <translation>Erfassung der Aufmerksamkeit</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>Protokoll</translation>
    </message>
    <message>
        <source>&amp;Restart the engine</source>
        <translation>Engine &amp;neu starten</translation>
    </message>
    <message>
        <source>&amp;Copy diagnostics</source>
        <translation>&amp;Diagnose kopieren</translation>
    </message>
    <message>
        <source>Versions, state and log for a report of a fault; nothing that was said.</source>
        <translation>Versionen, Zustand und Protokoll für eine Fehlermeldung; nichts von dem, was gesagt wurde.</translation>
    </message>
    <message>
        <source>Open the &amp;folder of the logs</source>
        <translation>&amp;Ordner der Protokolle öffnen</translation>
    </message>
    <message>
        <source>Remaining time</source>
        <translation>Restzeit</translation>
    </message>
    <message>
        <source>Lag over the last two minutes</source>
        <translation>Rückstand der letzten zwei Minuten</translation>
    </message>
    <message>
        <source>Which log</source>
        <translation>Welches Protokoll</translation>
    </message>
    <message>
        <source>About {seconds:.0f} s left</source>
        <translation>Noch etwa {seconds:.0f} s</translation>
    </message>
    <message>
        <source>Nothing is wrong.</source>
        <translation>Alles in Ordnung.</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
</context>
<context>
    <name>Export</name>
    <message>
        <source>The session is running: what is stable now is written; export again at its end.</source>
        <translation>Die Sitzung läuft: Geschrieben wird, was jetzt fest ist; am Ende noch einmal exportieren.</translation>
    </message>
    <message>
        <source>The session was interrupted: everything that was stable is here.</source>
        <translation>Die Sitzung wurde unterbrochen: Alles, was fest war, ist hier.</translation>
    </message>
    <message>
        <source>{count} damaged lines were left out.</source>
        <translation>{count} beschädigte Zeilen wurden ausgelassen.</translation>
    </message>
    <message>
        <source>(Nothing was said in this session.)</source>
        <translation>(In dieser Sitzung wurde nichts gesagt.)</translation>
    </message>
    <message>
        <source>For word processors: a table with times. The preview shows its text.</source>
        <translation>Für Textverarbeitungen: eine Tabelle mit Zeiten. Die Vorschau zeigt ihren Text.</translation>
    </message>
    <message>
        <source>For programs: UTF-8, one object a line with both languages and milliseconds.</source>
        <translation>Für Programme: UTF-8, je Zeile ein Objekt mit beiden Sprachen und Millisekunden.</translation>
    </message>
    <message>
        <source>The file is UTF-8. If a program shows wrong letters in it, write the byte-order mark, too.</source>
        <translation>Die Datei ist UTF-8. Zeigt ein Programm darin falsche Buchstaben, hilft die Byte-Reihenfolge-Marke.</translation>
    </message>
    <message>
        <source>Save the export</source>
        <translation>Export speichern</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>Exportieren</translation>
    </message>
    <message>
        <source>SubRip subtitles</source>
        <translation>SubRip-Untertitel</translation>
    </message>
    <message>
        <source>WebVTT subtitles</source>
        <translation>WebVTT-Untertitel</translation>
    </message>
    <message>
        <source>Plain text</source>
        <translation>Reiner Text</translation>
    </message>
    <message>
        <source>Word document</source>
        <translation>Word-Dokument</translation>
    </message>
    <message>
        <source>JSON lines</source>
        <translation>JSON-Zeilen</translation>
    </message>
    <message>
        <source>Translation</source>
        <translation>Übersetzung</translation>
    </message>
    <message>
        <source>What was heard</source>
        <translation>Gehörtes</translation>
    </message>
    <message>
        <source>Both</source>
        <translation>Beides</translation>
    </message>
    <message>
        <source>&amp;Format</source>
        <translation>&amp;Format</translation>
    </message>
    <message>
        <source>&amp;Text</source>
        <translation>&amp;Text</translation>
    </message>
    <message>
        <source>Longest &amp;line</source>
        <translation>Längste &amp;Zeile</translation>
    </message>
    <message>
        <source> columns</source>
        <translation> Spalten</translation>
    </message>
    <message>
        <source>Write a byte-order &amp;mark</source>
        <translation>Byte-Reihenfolge-&amp;Marke schreiben</translation>
    </message>
    <message>
        <source>Preview</source>
        <translation>Vorschau</translation>
    </message>
    <message>
        <source>&amp;Save as…</source>
        <translation>&amp;Speichern unter…</translation>
    </message>
</context>
<context>
    <name>FirstStart</name>
    <message>
        <source>Surtitle: first start</source>
        <translation>Surtitle: erster Start</translation>
    </message>
    <message>
        <source>The recogniser and the translator are not on this machine yet. They are downloaded once from the Python package index; nothing of what you say will ever leave the machine.</source>
        <translation>Erkennung und Übersetzung sind noch nicht auf diesem Rechner. Sie werden einmal vom Python Package Index geladen; nichts von dem, was gesagt wird, verlässt je den Rechner.</translation>
    </message>
    <message>
        <source>What will be done</source>
        <translation>Was geschehen wird</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
    <message>
        <source>&amp;Download and install</source>
        <translation>&amp;Laden und installieren</translation>
    </message>
    <message>
        <source>&amp;Not now</source>
        <translation>&amp;Nicht jetzt</translation>
    </message>
</context>
<context>
    <name>Languages</name>
    <message>
        <source>Czech</source>
        <translation>Tschechisch</translation>
    </message>
    <message>
        <source>German</source>
        <translation>Deutsch</translation>
    </message>
    <message>
        <source>English</source>
        <translation>Englisch</translation>
    </message>
    <message>
        <source>Spanish</source>
        <translation>Spanisch</translation>
    </message>
    <message>
        <source>French</source>
        <translation>Französisch</translation>
    </message>
    <message>
        <source>Italian</source>
        <translation>Italienisch</translation>
    </message>
    <message>
        <source>Chinese</source>
        <translation>Chinesisch</translation>
    </message>
</context>
<context>
    <name>Look</name>
    <message>
        <source>As the system</source>
        <translation>Wie das System</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>Dunkel</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>Hell</translation>
    </message>
    <message>
        <source>Dots under it</source>
        <translation>Punkte darunter</translation>
    </message>
    <message>
        <source>Dashes under it</source>
        <translation>Striche darunter</translation>
    </message>
    <message>
        <source>Wave under it</source>
        <translation>Welle darunter</translation>
    </message>
    <message>
        <source>Line under it</source>
        <translation>Linie darunter</translation>
    </message>
    <message>
        <source>Language of the &amp;interface</source>
        <translation>Sprache der &amp;Oberfläche</translation>
    </message>
    <message>
        <source>&amp;Theme</source>
        <translation>&amp;Farbschema</translation>
    </message>
    <message>
        <source>&amp;Font</source>
        <translation>&amp;Schrift</translation>
    </message>
    <message>
        <source>&amp;Size</source>
        <translation>&amp;Größe</translation>
    </message>
    <message>
        <source>&amp;Lines</source>
        <translation>&amp;Zeilen</translation>
    </message>
    <message>
        <source>Colour of stable text</source>
        <translation>Farbe festen Textes</translation>
    </message>
    <message>
        <source>Colour of held text</source>
        <translation>Farbe vorläufigen Textes</translation>
    </message>
    <message>
        <source>&amp;Held text also has</source>
        <translation>&amp;Vorläufiger Text hat außerdem</translation>
    </message>
    <message>
        <source>Colour of the background</source>
        <translation>Farbe des Hintergrunds</translation>
    </message>
    <message>
        <source>&amp;Opacity of the background</source>
        <translation>&amp;Deckkraft des Hintergrunds</translation>
    </message>
    <message>
        <source>Outl&amp;ine of letters</source>
        <translation>&amp;Umriss der Buchstaben</translation>
    </message>
    <message>
        <source>Colour of the outline</source>
        <translation>Farbe des Umrisses</translation>
    </message>
    <message>
        <source>Last lines stay &amp;for</source>
        <translation>Letzte Zeilen &amp;bleiben</translation>
    </message>
    <message>
        <source>&amp;Bold</source>
        <translation>F&amp;ett</translation>
    </message>
    <message>
        <source>&amp;Reading mode: stable text only</source>
        <translation>&amp;Lesemodus: nur fester Text</translation>
    </message>
    <message>
        <source>Show what was hear&amp;d</source>
        <translation>Gehörtes an&amp;zeigen</translation>
    </message>
    <message>
        <source>S&amp;mooth scrolling and fading</source>
        <translation>&amp;Weich rollen und ausblenden</translation>
    </message>
    <message>
        <source>The last lines fade &amp;away</source>
        <translation>Letzte Zeilen ausble&amp;nden</translation>
    </message>
    <message>
        <source>&amp;Above other windows</source>
        <translation>Über &amp;anderen Fenstern</translation>
    </message>
    <message>
        <source>seconds</source>
        <translation>Sekunden</translation>
    </message>
    <message>
        <source>On Wayland a program can neither keep itself above others nor choose its place; the desktop&apos;s own window menu can.</source>
        <translation>Unter Wayland kann ein Programm sich weder über anderen halten noch seinen Platz wählen; das Fenstermenü des Desktops kann es.</translation>
    </message>
    <message>
        <source>Back to the &amp;defaults</source>
        <translation>Auf &amp;Vorgaben zurücksetzen</translation>
    </message>
    <message>
        <source>Contrast {ratio:.1f}:1 at worst.</source>
        <translation>Kontrast mindestens {ratio:.1f}:1.</translation>
    </message>
    <message>
        <source>Hard to read on some desktops: more opacity or an outline of 2 px helps.</source>
        <translation>Auf manchem Hintergrund schwer zu lesen: Mehr Deckkraft oder ein Umriss von 2 px hilft.</translation>
    </message>
</context>
<context>
    <name>Microphones</name>
    <message>
        <source>Level</source>
        <translation>Pegel</translation>
    </message>
    <message>
        <source>no sound</source>
        <translation>kein Ton</translation>
    </message>
    <message>
        <source>very quiet</source>
        <translation>sehr leise</translation>
    </message>
    <message>
        <source>too loud</source>
        <translation>zu laut</translation>
    </message>
    <message>
        <source>good</source>
        <translation>gut</translation>
    </message>
    <message>
        <source>The system&apos;s default microphone</source>
        <translation>Standardmikrofon des Systems</translation>
    </message>
    <message>
        <source>what this computer plays</source>
        <translation>was dieser Rechner abspielt</translation>
    </message>
    <message>
        <source>not connected now</source>
        <translation>jetzt nicht angeschlossen</translation>
    </message>
    <message>
        <source>Recording… speak now</source>
        <translation>Aufnahme… bitte sprechen</translation>
    </message>
    <message>
        <source>&amp;Record {seconds:.0f} s</source>
        <translation>{seconds:.0f} s &amp;aufnehmen</translation>
    </message>
    <message>
        <source>Playing…</source>
        <translation>Wiedergabe…</translation>
    </message>
    <message>
        <source>&amp;Play it</source>
        <translation>&amp;Abspielen</translation>
    </message>
    <message>
        <source>In this session sound was lost {count} times: the machine is busy.</source>
        <translation>In dieser Sitzung ging {count}-mal Ton verloren: Der Rechner ist ausgelastet.</translation>
    </message>
    <message>
        <source>Microphone</source>
        <translation>Mikrofon</translation>
    </message>
    <message>
        <source>Microphones</source>
        <translation>Mikrofone</translation>
    </message>
    <message>
        <source>&amp;Use this microphone</source>
        <translation>Dieses Mikrofon &amp;verwenden</translation>
    </message>
    <message>
        <source>&amp;Look again</source>
        <translation>Noch einmal &amp;suchen</translation>
    </message>
    <message>
        <source>After a device was connected; not during a session</source>
        <translation>Nach dem Anschließen eines Geräts; nicht während einer Sitzung</translation>
    </message>
    <message>
        <source>There is no microphone: connect one and look again, or play a file with `surtitle run`.</source>
        <translation>Es gibt kein Mikrofon: eines anschließen und noch einmal suchen oder mit `surtitle run` eine Datei abspielen.</translation>
    </message>
</context>
<context>
    <name>PresetNames</name>
    <message>
        <source>Laptop</source>
        <translation>Laptop</translation>
    </message>
    <message>
        <source>Remote translator</source>
        <translation>Entfernte Übersetzung</translation>
    </message>
    <message>
        <source>demo quality</source>
        <translation>Demo-Qualität</translation>
    </message>
    <message>
        <source>Recognises speech on this machine and has an MT server, here or on another host, translate it.</source>
        <translation>Erkennt die Sprache auf diesem Rechner und lässt sie von einem Übersetzungsserver übersetzen, hier oder auf einem anderen Rechner.</translation>
    </message>
    <message>
        <source>Runs on two CPU cores without a GPU, from models that come with the program.</source>
        <translation>Läuft auf zwei CPU-Kernen ohne GPU, mit Modellen, die das Programm mitbringt.</translation>
    </message>
    <message>
        <source>Gemma, low latency</source>
        <translation>Gemma, geringe Verzögerung</translation>
    </message>
    <message>
        <source>Gemma, high latency</source>
        <translation>Gemma, größere Verzögerung</translation>
    </message>
    <message>
        <source>Qwen, low latency</source>
        <translation>Qwen, geringe Verzögerung</translation>
    </message>
    <message>
        <source>Qwen3-ASR and Gemma 4 E4B beside each other on one GPU of 40 GB, a look at new speech every 0.85 s.</source>
        <translation>Qwen3-ASR und Gemma 4 E4B nebeneinander auf einer GPU mit 40 GB; neu Gesprochenes wird alle 0,85 s angesehen.</translation>
    </message>
    <message>
        <source>Qwen3-ASR and Gemma 4 E4B beside each other on one GPU of 40 GB, a look at new speech every 1.5 s.</source>
        <translation>Qwen3-ASR und Gemma 4 E4B nebeneinander auf einer GPU mit 40 GB; neu Gesprochenes wird alle 1,5 s angesehen.</translation>
    </message>
    <message>
        <source>Qwen3-ASR and Qwen3 1.7B beside each other on one GPU of 16 GB, a look at new speech every 0.85 s.</source>
        <translation>Qwen3-ASR und Qwen3 1.7B nebeneinander auf einer GPU mit 16 GB; neu Gesprochenes wird alle 0,85 s angesehen.</translation>
    </message>
</context>
<context>
    <name>Presets</name>
    <message>
        <source>&amp;Resume</source>
        <translation>&amp;Fortsetzen</translation>
    </message>
    <message>
        <source>&amp;Pause</source>
        <translation>&amp;Anhalten</translation>
    </message>
    <message>
        <source>&amp;Cancel the download</source>
        <translation>Herunterladen a&amp;bbrechen</translation>
    </message>
    <message>
        <source>Translations are of {quality}.</source>
        <translation>Übersetzungen haben {quality}.</translation>
    </message>
    <message>
        <source>{size:.0f} GB of GPU memory</source>
        <translation>{size:.0f} GB GPU-Speicher</translation>
    </message>
    <message>
        <source>{size:.1f} GB of memory</source>
        <translation>{size:.1f} GB Arbeitsspeicher</translation>
    </message>
    <message>
        <source>{size:.1f} GB on disk</source>
        <translation>{size:.1f} GB auf der Platte</translation>
    </message>
    <message>
        <source>there is no GPU here</source>
        <translation>hier ist keine GPU</translation>
    </message>
    <message>
        <source>{name}: {size:.0f} GB free</source>
        <translation>{name}: {size:.0f} GB frei</translation>
    </message>
    <message>
        <source>here: {size:.1f} GB</source>
        <translation>hier: {size:.1f} GB</translation>
    </message>
    <message>
        <source>{size:.0f} GB free</source>
        <translation>{size:.0f} GB frei</translation>
    </message>
    <message>
        <source>your own model {name}</source>
        <translation>eigenes Modell {name}</translation>
    </message>
    <message>
        <source>model {name}</source>
        <translation>Modell {name}</translation>
    </message>
    <message>
        <source>here</source>
        <translation>vorhanden</translation>
    </message>
    <message>
        <source>missing</source>
        <translation>fehlt</translation>
    </message>
    <message>
        <source>{size:.1f} GB to download</source>
        <translation>{size:.1f} GB herunterzuladen</translation>
    </message>
    <message>
        <source>downloaded when it is first used</source>
        <translation>wird beim ersten Gebrauch heruntergeladen</translation>
    </message>
    <message>
        <source>It needs a GPU with {needed:.0f} GB, and there is none here.</source>
        <translation>Braucht eine GPU mit {needed:.0f} GB; hier gibt es keine.</translation>
    </message>
    <message>
        <source>It needs {needed:.0f} GB of GPU memory; {name} has {here:.0f} GB free.</source>
        <translation>Braucht {needed:.0f} GB GPU-Speicher; auf {name} sind {here:.0f} GB frei.</translation>
    </message>
    <message>
        <source>It needs {needed:.0f} GB of GPU memory; {name} has {here:.0f} GB free. Close what uses it.</source>
        <translation>Braucht {needed:.0f} GB GPU-Speicher; auf {name} sind {here:.0f} GB frei. Schließen, was ihn belegt.</translation>
    </message>
    <message>
        <source>It needs {needed:.1f} GB on disk, and {here:.1f} GB are free: make room.</source>
        <translation>Braucht {needed:.1f} GB auf der Platte, {here:.1f} GB sind frei: Platz schaffen.</translation>
    </message>
    <message>
        <source>It needs {needed:.1f} GB of memory, and this machine has {here:.1f} GB.</source>
        <translation>Braucht {needed:.1f} GB Arbeitsspeicher; dieser Rechner hat {here:.1f} GB.</translation>
    </message>
    <message>
        <source>Your model {name} is not there: choose another.</source>
        <translation>Das eigene Modell {name} ist nicht da: ein anderes wählen.</translation>
    </message>
    <message>
        <source>The weights of {name} are not installed: run `make run`, which brings them.</source>
        <translation>Die Gewichte von {name} sind nicht installiert: `make run` holt sie.</translation>
    </message>
    <message>
        <source>It needs {name}, which is not installed: run `surtitle setup --gpu` in a terminal.</source>
        <translation>Braucht {name}, das nicht installiert ist: im Terminal `surtitle setup --gpu` ausführen.</translation>
    </message>
    <message>
        <source>Not measured on this machine yet: its speed is shown here after the first session.</source>
        <translation>Auf diesem Rechner noch nicht gemessen: Die Geschwindigkeit steht nach der ersten Sitzung hier.</translation>
    </message>
    <message>
        <source>Measured here: {lag:.1f} s behind the voice, {factor:.2f} s of work for each second.</source>
        <translation>Hier gemessen: {lag:.1f} s hinter der Stimme, {factor:.2f} s Arbeit je Sekunde.</translation>
    </message>
    <message>
        <source>Too slow for this machine.</source>
        <translation>Zu langsam für diesen Rechner.</translation>
    </message>
    <message>
        <source>{name}: complete, {done:.0f} MB</source>
        <translation>{name}: vollständig, {done:.0f} MB</translation>
    </message>
    <message>
        <source>{name}: failed; start again to go on where it stopped</source>
        <translation>{name}: fehlgeschlagen; ein neuer Start macht dort weiter</translation>
    </message>
    <message>
        <source>{name}: cancelled</source>
        <translation>{name}: abgebrochen</translation>
    </message>
    <message>
        <source>{done:.0f} of {total:.0f} MB</source>
        <translation>{done:.0f} von {total:.0f} MB</translation>
    </message>
    <message>
        <source>{done:.0f} MB</source>
        <translation>{done:.0f} MB</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>angehalten</translation>
    </message>
    <message>
        <source>{speed:.1f} MB/s</source>
        <translation>{speed:.1f} MB/s</translation>
    </message>
    <message>
        <source>{minutes}:{seconds:02} left</source>
        <translation>noch {minutes}:{seconds:02}</translation>
    </message>
    <message>
        <source>Looking at what this machine has…</source>
        <translation>Der Rechner wird angesehen…</translation>
    </message>
    <message>
        <source>&amp;Restart with this</source>
        <translation>Damit &amp;neu starten</translation>
    </message>
    <message>
        <source>&amp;Start</source>
        <translation>&amp;Starten</translation>
    </message>
    <message>
        <source>I accept the {licence}</source>
        <translation>Ich nehme an: {licence}</translation>
    </message>
    <message>
        <source>Read it</source>
        <translation>Lesen</translation>
    </message>
    <message>
        <source>Read the {licence}</source>
        <translation>{licence} lesen</translation>
    </message>
    <message>
        <source>No preset can be used on this machine.</source>
        <translation>Auf diesem Rechner ist keine Voreinstellung nutzbar.</translation>
    </message>
    <message>
        <source>A server&apos;s address is ws://host:port or wss://host:port.</source>
        <translation>Die Adresse eines Servers ist ws://host:port oder wss://host:port.</translation>
    </message>
    <message>
        <source>Accept the licence to go on.</source>
        <translation>Zum Fortfahren die Lizenz annehmen.</translation>
    </message>
    <message>
        <source>Presets and languages</source>
        <translation>Voreinstellungen und Sprachen</translation>
    </message>
    <message>
        <source>Spoken &amp;language</source>
        <translation>&amp;Gesprochene Sprache</translation>
    </message>
    <message>
        <source>Subtitles &amp;in</source>
        <translation>&amp;Untertitel auf</translation>
    </message>
    <message>
        <source>Translation ser&amp;ver</source>
        <translation>Über&amp;setzungsserver</translation>
    </message>
    <message>
        <source>&amp;File with its token</source>
        <translation>&amp;Datei mit seinem Token</translation>
    </message>
    <message>
        <source>&amp;About the talk</source>
        <translation>Über den &amp;Vortrag</translation>
    </message>
    <message>
        <source>What the recogniser listens for</source>
        <translation>Worauf die Spracherkennung hört</translation>
    </message>
    <message>
        <source>Names, terms and their translations, the occasion: helps the translator</source>
        <translation>Namen, Begriffe und ihre Übersetzungen, der Anlass: hilft der Übersetzung</translation>
    </message>
    <message>
        <source>&amp;Use</source>
        <translation>&amp;Verwenden</translation>
    </message>
    <message>
        <source>Load it without starting a session</source>
        <translation>Laden, ohne eine Sitzung zu beginnen</translation>
    </message>
</context>
<context>
    <name>Recovery</name>
    <message>
        <source>Interrupted sessions</source>
        <translation>Unterbrochene Sitzungen</translation>
    </message>
    <message>
        <source>&amp;Recover and show</source>
        <translation>&amp;Wiederherstellen und zeigen</translation>
    </message>
    <message>
        <source>&amp;Later</source>
        <translation>&amp;Später</translation>
    </message>
    <message>
        <source>The program ended in the middle of these sessions. Everything that was stable is kept.</source>
        <translation>Das Programm endete mitten in diesen Sitzungen. Alles, was fest war, ist erhalten.</translation>
    </message>
</context>
<context>
    <name>Sentences</name>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>Bereit</translation>
    </message>
    <message>
        <source>Listening</source>
        <translation>Hört zu</translation>
    </message>
    <message>
        <source>Speech</source>
        <translation>Es wird gesprochen</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Loading {percent}%</source>
        <translation>Laden {percent} %</translation>
    </message>
    <message>
        <source>Loading {percent}%: {text}</source>
        <translation>Laden {percent} %: {text}</translation>
    </message>
    <message>
        <source>Loading: {text}</source>
        <translation>Laden: {text}</translation>
    </message>
    <message>
        <source>{seconds} s behind</source>
        <translation>{seconds} s zurück</translation>
    </message>
    <message>
        <source>Finishing the last words</source>
        <translation>Die letzten Wörter werden fertig</translation>
    </message>
    <message>
        <source>The microphone was lost</source>
        <translation>Das Mikrofon ist weg</translation>
    </message>
    <message>
        <source>The engine stopped</source>
        <translation>Die Engine steht</translation>
    </message>
    <message>
        <source>demo quality</source>
        <translation>Demo-Qualität</translation>
    </message>
    <message>
        <source>starting the engine</source>
        <translation>die Engine startet</translation>
    </message>
    <message>
        <source>The engine ended without being asked to; restart it to go on.</source>
        <translation>Die Engine hat sich von selbst beendet; zum Weitermachen neu starten.</translation>
    </message>
    <message>
        <source>The engine ended with exit code {code}; restart it to go on.</source>
        <translation>Die Engine endete mit Code {code}; zum Weitermachen neu starten.</translation>
    </message>
    <message>
        <source>The engine was killed ({signal}), perhaps because memory ran out; restart it to go on.</source>
        <translation>Die Engine wurde abgebrochen ({signal}), vielleicht aus Mangel an Speicher; zum Weitermachen neu starten.</translation>
    </message>
    <message>
        <source>The engine crashed ({signal}); restart it to go on.</source>
        <translation>Die Engine ist abgestürzt ({signal}); zum Weitermachen neu starten.</translation>
    </message>
    <message>
        <source>The engine was ended by {signal}; restart it to go on.</source>
        <translation>Die Engine wurde durch {signal} beendet; zum Weitermachen neu starten.</translation>
    </message>
    <message>
        <source>The engine said nothing for {seconds} s and was ended; restart it to go on.</source>
        <translation>Die Engine schwieg {seconds} s lang und wurde beendet; zum Weitermachen neu starten.</translation>
    </message>
    <message>
        <source>The engine was ended on request.</source>
        <translation>Die Engine wurde auf Wunsch beendet.</translation>
    </message>
    <message>
        <source>The transcript cannot be written: {why}.</source>
        <translation>Die Mitschrift kann nicht geschrieben werden: {why}.</translation>
    </message>
    <message>
        <source>There is no file &apos;{name}&apos;.</source>
        <translation>Es gibt keine Datei „{name}“.</translation>
    </message>
    <message>
        <source>No microphone</source>
        <translation>Kein Mikrofon</translation>
    </message>
    <message>
        <source>There is no microphone; connect one, or give an audio file.</source>
        <translation>Es gibt kein Mikrofon; eines anschließen oder eine Audiodatei angeben.</translation>
    </message>
    <message>
        <source>There is no microphone.</source>
        <translation>Es gibt kein Mikrofon.</translation>
    </message>
    <message>
        <source>There is no microphone &apos;{name}&apos;; there are: {others}.</source>
        <translation>Es gibt kein Mikrofon „{name}“; es gibt: {others}.</translation>
    </message>
    <message>
        <source>The sound system does not answer.</source>
        <translation>Das Tonsystem antwortet nicht.</translation>
    </message>
    <message>
        <source>The sound system does not answer: a lost device still holds it.</source>
        <translation>Das Tonsystem antwortet nicht: Ein verlorenes Gerät hält es noch fest.</translation>
    </message>
    <message>
        <source>The microphone &apos;{name}&apos; cannot be opened: {why}.</source>
        <translation>Das Mikrofon „{name}“ lässt sich nicht öffnen: {why}.</translation>
    </message>
    <message>
        <source>The microphone &apos;{name}&apos; did not open within {seconds} s.</source>
        <translation>Das Mikrofon „{name}“ öffnete sich nicht binnen {seconds} s.</translation>
    </message>
    <message>
        <source>&apos;{name}&apos; is a folder; give an audio file.</source>
        <translation>„{name}“ ist ein Ordner; eine Audiodatei angeben.</translation>
    </message>
    <message>
        <source>&apos;{name}&apos; cannot be read: {why}.</source>
        <translation>„{name}“ ist nicht lesbar: {why}.</translation>
    </message>
    <message>
        <source>&apos;{name}&apos; is not an audio file that can be played; use wav, flac or ogg.</source>
        <translation>„{name}“ ist keine abspielbare Audiodatei; wav, flac oder ogg verwenden.</translation>
    </message>
    <message>
        <source>&apos;{name}&apos; holds no sound; give a file that is longer than 0 s.</source>
        <translation>„{name}“ enthält keinen Ton; eine Datei angeben, die länger als 0 s ist.</translation>
    </message>
    <message>
        <source>The PortAudio library is missing; install it with `sudo apt install libportaudio2`.</source>
        <translation>Die Bibliothek PortAudio fehlt; `sudo apt install libportaudio2` installiert sie.</translation>
    </message>
    <message>
        <source>The engine ended the session by itself.</source>
        <translation>Die Engine hat die Sitzung von selbst beendet.</translation>
    </message>
    <message>
        <source>{trouble}: it is looked for.</source>
        <translation>{trouble}: Es wird gesucht.</translation>
    </message>
    <message>
        <source>{trouble}: connect it again, or choose another; the session goes on.</source>
        <translation>{trouble}: wieder anschließen oder ein anderes wählen; die Sitzung geht weiter.</translation>
    </message>
    <message>
        <source>{trouble}: &apos;{name}&apos; is used until it is back.</source>
        <translation>{trouble}: „{name}“ dient, bis es wieder da ist.</translation>
    </message>
    <message>
        <source>The microphone &apos;{name}&apos; was disconnected</source>
        <translation>Das Mikrofon „{name}“ wurde getrennt</translation>
    </message>
    <message>
        <source>The microphone &apos;{name}&apos; went silent</source>
        <translation>Das Mikrofon „{name}“ ist verstummt</translation>
    </message>
    <message>
        <source>The microphone &apos;{name}&apos; is not connected</source>
        <translation>Das Mikrofon „{name}“ ist nicht angeschlossen</translation>
    </message>
    <message>
        <source>The sound of &apos;{name}&apos; failed ({error}); the log has the details.</source>
        <translation>Der Ton von „{name}“ fiel aus ({error}); Näheres steht im Protokoll.</translation>
    </message>
    <message>
        <source>The page for browsers cannot use port {port} ({why}): choose another one.</source>
        <translation>Die Seite für Browser kann Port {port} nicht nutzen ({why}): einen anderen wählen.</translation>
    </message>
    <message>
        <source>Loading {name}</source>
        <translation>{name} wird geladen</translation>
    </message>
    <message>
        <source>Warming up {name}</source>
        <translation>{name} wird warm</translation>
    </message>
    <message>
        <source>{name} is ready</source>
        <translation>{name} ist bereit</translation>
    </message>
    <message>
        <source>connecting to the MT server</source>
        <translation>Verbindung zum Übersetzungsserver</translation>
    </message>
    <message>
        <source>A moment of audio could not be processed and was left out.</source>
        <translation>Ein Moment des Tons konnte nicht verarbeitet werden und wurde ausgelassen.</translation>
    </message>
    <message>
        <source>A moment of speech could not be recognised and was left out.</source>
        <translation>Ein Moment der Rede konnte nicht erkannt werden und wurde ausgelassen.</translation>
    </message>
    <message>
        <source>A piece of the translation failed; the log has the details.</source>
        <translation>Ein Stück der Übersetzung ist misslungen; Einzelheiten stehen im Protokoll.</translation>
    </message>
    <message>
        <source>No head set for {direction}: using the shared heads of {model}.</source>
        <translation>Für {direction} gibt es keine eigenen Köpfe: Die gemeinsamen von {model} werden verwendet.</translation>
    </message>
    <message>
        <source>The heads were found in {model} and are used with {name}: if that is another model, find its own with `surtitle calibrate`.</source>
        <translation>Die Köpfe wurden in {model} gefunden und werden mit {name} verwendet: Ist das ein anderes Modell, dessen eigene mit `surtitle calibrate` suchen.</translation>
    </message>
    <message>
        <source>The context is too long for the translator&apos;s prompt: {left_out} of its {words} words are left out; shorten it, or set a larger translator.context_tokens.</source>
        <translation>Der Kontext ist zu lang für die Eingabe des Übersetzers: {left_out} seiner {words} Wörter bleiben weg; ihn kürzen oder translator.context_tokens höher setzen.</translation>
    </message>
</context>
<context>
    <name>Settings</name>
    <message>
        <source>None has been accepted yet.</source>
        <translation>Noch keine angenommen.</translation>
    </message>
    <message>
        <source>There is nothing at {path}.</source>
        <translation>Unter {path} ist nichts.</translation>
    </message>
    <message>
        <source>Put all settings back to how they were on the first day?</source>
        <translation>Alle Einstellungen auf den Stand des ersten Tages zurücksetzen?</translation>
    </message>
    <message>
        <source>Recorded sessions stay.</source>
        <translation>Aufgezeichnete Sitzungen bleiben.</translation>
    </message>
    <message>
        <source>&amp;Put back</source>
        <translation>&amp;Zurücksetzen</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>What is used</source>
        <translation>Was verwendet wird</translation>
    </message>
    <message>
        <source>Your own models</source>
        <translation>Eigene Modelle</translation>
    </message>
    <message>
        <source>Accepted licences</source>
        <translation>Angenommene Lizenzen</translation>
    </message>
    <message>
        <source>Where everything lies</source>
        <translation>Wo alles liegt</translation>
    </message>
    <message>
        <source>&amp;Preset and languages…</source>
        <translation>&amp;Voreinstellung und Sprachen…</translation>
    </message>
    <message>
        <source>&amp;Microphone…</source>
        <translation>&amp;Mikrofon…</translation>
    </message>
    <message>
        <source>&amp;Appearance and shortcuts…</source>
        <translation>&amp;Aussehen und Tastenkürzel…</translation>
    </message>
    <message>
        <source>In place of the preset&apos;s models: a folder of a faster-whisper model, a GGUF file.</source>
        <translation>Statt der Modelle der Voreinstellung: Ordner eines faster-whisper-Modells, eine GGUF-Datei.</translation>
    </message>
    <message>
        <source>&amp;Recogniser</source>
        <translation>&amp;Spracherkennung</translation>
    </message>
    <message>
        <source>&amp;Translator</source>
        <translation>Ü&amp;bersetzung</translation>
    </message>
    <message>
        <source>the preset&apos;s own</source>
        <translation>wie in der Voreinstellung</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>Wählen…</translation>
    </message>
    <message>
        <source>Choose: {what}</source>
        <translation>Wählen: {what}</translation>
    </message>
    <message>
        <source>&amp;Withdraw</source>
        <translation>&amp;Zurücknehmen</translation>
    </message>
    <message>
        <source>You are asked again before the next session</source>
        <translation>Vor der nächsten Sitzung wird erneut gefragt</translation>
    </message>
    <message>
        <source>not saved in this run</source>
        <translation>wird in diesem Lauf nicht gespeichert</translation>
    </message>
    <message>
        <source>Sessions: {path}</source>
        <translation>Sitzungen: {path}</translation>
    </message>
    <message>
        <source>Settings: {path}</source>
        <translation>Einstellungen: {path}</translation>
    </message>
    <message>
        <source>&amp;Open the sessions&apos; folder</source>
        <translation>&amp;Ordner der Sitzungen öffnen</translation>
    </message>
    <message>
        <source>Put all &amp;back…</source>
        <translation>Alles &amp;zurücksetzen…</translation>
    </message>
</context>
<context>
    <name>Shortcuts</name>
    <message>
        <source>Shortcut for {action}</source>
        <translation>Tastenkürzel für {action}</translation>
    </message>
    <message>
        <source>Back to the &amp;defaults</source>
        <translation>Auf &amp;Vorgaben zurücksetzen</translation>
    </message>
    <message>
        <source>{keys} is taken by “{action}”.</source>
        <translation>{keys} gehört schon zu „{action}“.</translation>
    </message>
</context>
<context>
    <name>StateBar</name>
    <message>
        <source>Stop</source>
        <translation>Stopp</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>Start</translation>
    </message>
    <message>
        <source>Warning</source>
        <translation>Warnung</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Notice</source>
        <translation>Hinweis</translation>
    </message>
    <message>
        <source>Quality of the translation</source>
        <translation>Qualität der Übersetzung</translation>
    </message>
    <message>
        <source>Microphone level</source>
        <translation>Mikrofonpegel</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Restart</source>
        <translation>Neu starten</translation>
    </message>
    <message>
        <source>Shortcut {keys}</source>
        <translation>Tastenkürzel {keys}</translation>
    </message>
</context>
<context>
    <name>Transcript</name>
    <message>
        <source>running</source>
        <translation>läuft</translation>
    </message>
    <message>
        <source>interrupted</source>
        <translation>unterbrochen</translation>
    </message>
    <message>
        <source>damaged</source>
        <translation>beschädigt</translation>
    </message>
    <message>
        <source>of a newer version</source>
        <translation>von einer neueren Version</translation>
    </message>
    <message>
        <source>Sessions</source>
        <translation>Sitzungen</translation>
    </message>
    <message>
        <source>&amp;Delete {count} sessions…</source>
        <translation>{count} Sitzungen &amp;löschen…</translation>
    </message>
    <message>
        <source>&amp;Delete the session…</source>
        <translation>Sitzung &amp;löschen…</translation>
    </message>
    <message>
        <source>bookmarked</source>
        <translation>mit Lesezeichen</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>What was heard</source>
        <translation>Gehörtes</translation>
    </message>
    <message>
        <source>Translation</source>
        <translation>Übersetzung</translation>
    </message>
    <message>
        <source>Transcript</source>
        <translation>Mitschrift</translation>
    </message>
    <message>
        <source>not found</source>
        <translation>nicht gefunden</translation>
    </message>
    <message>
        <source>{number} of {count}</source>
        <translation>{number} von {count}</translation>
    </message>
    <message>
        <source>{count} found</source>
        <translation>{count} gefunden</translation>
    </message>
    <message>
        <source>A time is 1:23 or 1:02:03</source>
        <translation>Eine Zeit ist 1:23 oder 1:02:03</translation>
    </message>
    <message>
        <source>Delete this session for good?</source>
        <translation>Diese Sitzung endgültig löschen?</translation>
    </message>
    <message>
        <source>Delete {count} sessions for good?</source>
        <translation>{count} Sitzungen endgültig löschen?</translation>
    </message>
    <message>
        <source>Their text cannot be brought back; exports stay.</source>
        <translation>Ihr Text ist nicht wiederzubringen; Exporte bleiben.</translation>
    </message>
    <message>
        <source>&amp;Delete</source>
        <translation>&amp;Löschen</translation>
    </message>
    <message>
        <source>Go to a time, for example 1:23</source>
        <translation>Zu einer Zeit gehen, zum Beispiel 1:23</translation>
    </message>
    <message>
        <source>Search in both languages</source>
        <translation>In beiden Sprachen suchen</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>Suche</translation>
    </message>
    <message>
        <source>Lines of the session</source>
        <translation>Zeilen der Sitzung</translation>
    </message>
    <message>
        <source>Next place found</source>
        <translation>Nächste Fundstelle</translation>
    </message>
    <message>
        <source>Previous place found</source>
        <translation>Vorige Fundstelle</translation>
    </message>
    <message>
        <source>Set or remove a &amp;bookmark</source>
        <translation>Lese&amp;zeichen setzen oder entfernen</translation>
    </message>
    <message>
        <source>Go to the &amp;next bookmark</source>
        <translation>Zum &amp;nächsten Lesezeichen</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy &amp;both languages</source>
        <translation>&amp;Beide Sprachen kopieren</translation>
    </message>
    <message>
        <source>Copy what was &amp;heard</source>
        <translation>&amp;Gehörtes kopieren</translation>
    </message>
    <message>
        <source>Copy the &amp;translation</source>
        <translation>&amp;Übersetzung kopieren</translation>
    </message>
    <message>
        <source>Bookmarks</source>
        <translation>Lesezeichen</translation>
    </message>
    <message>
        <source>&amp;Export…</source>
        <translation>&amp;Exportieren…</translation>
    </message>
</context>
<context>
    <name>Tray</name>
    <message>
        <source>Show the window</source>
        <translation>Fenster zeigen</translation>
    </message>
</context>
<context>
    <name>Window</name>
    <message>
        <source>Clicks go through; {keys} ends that.</source>
        <translation>Klicks gehen hindurch; {keys} beendet das.</translation>
    </message>
    <message>
        <source>Subtitles</source>
        <translation>Untertitel</translation>
    </message>
</context>
</TS>
